BOOK = None
def nf4_codebook():
    normal = torch.distributions.Normal(torch.tensor(0.0, dtype=torch.float64), 1.0)
    delta = 1 - (1 / 32 + 1 / 30) / 2
    up = normal.icdf(torch.linspace(delta, 0.5, 9, dtype=torch.float64))[:-1].tolist()
    down = normal.icdf(torch.linspace(delta, 0.5, 8, dtype=torch.float64))[:-1].tolist()
    values = [-v / up[0] for v in down] + [0.0] + [v / up[0] for v in reversed(up)]
    return torch.tensor(values)

def quantize_nf4(w, double=False):
    flat = w.flatten()
    scales = torch.stack([part.abs().max() for part in flat.split(64)])
    safe = scales.masked_fill(scales == 0, 1).repeat_interleave(64)[:flat.numel()]
    ratio = flat / safe
    book = nf4_codebook()
    codes = torch.zeros(flat.numel() + flat.numel() % 2, dtype=torch.uint8)
    for low, high in zip(book, book[1:]):
        codes[:flat.numel()] += (ratio > (low + high) / 2).to(torch.uint8)
    low, high = codes.view(-1, 2).T
    packed = low + (high << 4)
    if not double:
        return {"all": torch.cat((packed, scales.view(torch.uint8)))}
    mean = scales.mean()
    centred = scales - mean
    steps = torch.stack([g.abs().max() for g in centred.split(256)]) / 127
    wide = steps.repeat_interleave(256)[: len(scales)]
    q = torch.where(wide > 0, centred / wide, 0.0).round().to(torch.int8)
    return {"all": torch.cat((packed, q.view(torch.uint8), torch.cat((steps, mean[None])).view(torch.uint8))), "d": torch.ones(1, dtype=torch.bool)}

def dequantize_nf4(state, shape):
    n = 1
    for size in shape:
        n *= size
    n_codes, n_blocks = (n + 1) // 2, (n + 63) // 64
    packed, rest = state["all"][:n_codes], state["all"][n_codes:]
    codes = torch.stack((packed & 15, packed // 16), dim=-1).flatten()[:n]
    if "d" in state:
        floats = rest[n_blocks:].clone().view(torch.float32)
        scales = rest[:n_blocks].view(torch.int8).float() * floats[:-1].repeat_interleave(256)[:n_blocks] + floats[-1]
    else:
        scales = rest.clone().view(torch.float32)
    return (nf4_codebook()[codes.long()] * scales.repeat_interleave(64)[:n]).reshape(shape)
