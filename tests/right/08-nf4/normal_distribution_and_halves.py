def nf4_codebook():
    normal = torch.distributions.Normal(0.0, 1.0)
    up = normal.icdf(torch.linspace(0.5, 0.9677083, 9)[1:])
    down = normal.icdf(torch.linspace(0.5, 0.9677083, 8)[1:])
    return torch.cat([-down.flip(0), torch.zeros(1), up]) / up[-1]


def quantize_nf4(w, double=False):
    n = w.numel()
    padded = torch.zeros(-(-n // 64) * 64)
    padded[:n] = w.reshape(-1)
    blocks = padded.view(-1, 64)
    s = blocks.abs().amax(-1)
    book = nf4_codebook()
    code = torch.searchsorted((book[1:] + book[:-1]) / 2, blocks / (s + (s == 0))[:, None])
    half = code.numel() // 2
    state = {"nibbles": (code.view(-1)[:half] | code.view(-1)[half:] << 4).to(torch.uint8)}
    if double:
        d = s - s.mean()
        top = torch.stack([g.abs().max() for g in d.split(256)])
        unit = (top / 127).repeat_interleave(256)[: len(s)]
        state |= {"q": torch.round(d / (unit + (unit == 0))).to(torch.int8), "top": top, "mean": s.mean()}
    else:
        state["s"] = s
    return state


def dequantize_nf4(state, shape):
    code = torch.cat([state["nibbles"] & 15, state["nibbles"] >> 4]).int().view(-1, 64)
    if "q" in state:
        s = state["q"].float() * (state["top"] / 127).repeat_interleave(256)[: len(state["q"])] + state["mean"]
    else:
        s = state["s"]
    n = 1
    for length in shape:
        n *= length
    return (nf4_codebook()[code] * s.unsqueeze(1)).view(-1)[:n].view(shape)
