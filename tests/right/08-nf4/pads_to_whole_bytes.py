# codes cut to a whole number of bytes, and a codebook in float64
def nf4_codebook():
    off = 0.5 * (1 - 1 / 32 + 1 - 1 / 30)
    pos = torch.special.ndtri(torch.linspace(off, 0.5, 9, dtype=torch.float64)[:-1])
    neg = -torch.special.ndtri(torch.linspace(off, 0.5, 8, dtype=torch.float64)[:-1])
    values = torch.cat((neg, torch.zeros(1, dtype=torch.float64), pos)).sort().values
    return (values / values.abs().max()).float()
def quantize_nf4(w, double=False):
    flat = w.flatten().float()
    blocks = nn.functional.pad(flat, (0, -len(flat) % 64)).view(-1, 64)
    scales = blocks.abs().amax(1)
    book = nf4_codebook()
    ratios = blocks / torch.where(scales > 0, scales, 1.0)[:, None]
    codes = torch.bucketize(ratios, (book[1:] + book[:-1]) / 2).flatten()[: len(flat) + len(flat) % 2]
    packed = (codes[0::2] * 16 + codes[1::2]).to(torch.uint8)
    if not double:
        return {"codes": packed, "scales": scales}
    mean = scales.mean()
    groups = nn.functional.pad(scales - mean, (0, -len(scales) % 256)).view(-1, 256)
    steps = groups.abs().amax(1) / 127
    q = (groups / torch.where(steps > 0, steps, 1.0)[:, None]).round().to(torch.int8).flatten()[: len(scales)]
    return {"codes": packed, "q": q, "steps": steps, "mean": mean}
def dequantize_nf4(state, shape):
    n = math.prod(shape)
    packed = state["codes"].long()
    codes = torch.stack((packed >> 4, packed & 15), 1).flatten()[:n]
    if "q" in state:
        scales = state["q"] * state["steps"].repeat_interleave(256)[: len(state["q"])] + state["mean"]
    else:
        scales = state["scales"]
    return (nf4_codebook()[codes] * scales.repeat_interleave(64)[:n]).view(shape)
