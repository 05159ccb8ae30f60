VALUES = """-1.0 -0.6961928009986877 -0.5250730514526367 -0.39491748809814453 -0.28444138169288635 -0.18477343022823334
-0.09105003625154495 0.0 0.07958029955625534 0.16093020141124725 0.24611230194568634 0.33791524171829224
0.44070982933044434 0.5626170039176941 0.7229568362236023 1.0"""


def nf4_codebook():
    return torch.tensor([float(v) for v in VALUES.split()])


def quantize_nf4(w, double=False):
    flat = w.reshape(-1)
    flat = torch.cat([flat, flat.new_zeros(-len(flat) % 64)])
    b = flat.reshape(-1, 64)
    s = b.abs().max(dim=1).values
    extra = {}
    if double:
        offset = s.mean()
        low = torch.stack([g.min() for g in (s - offset).split(256)])
        high = torch.stack([g.max() for g in (s - offset).split(256)])
        step = ((high - low) / 255).clamp_min(1e-20)
        each = torch.arange(len(s)) // 256
        byte = ((s - offset - low[each]) / step[each]).round().clamp(0, 255).to(torch.uint8)
        extra = {"byte": byte, "low": low + offset, "step": step}
        s = byte * step[each] + low[each] + offset
    else:
        extra = {"s": s}
    u = b / s.clamp_min(1e-20)[:, None]
    code = (u[..., None] - nf4_codebook()).abs().argmin(-1).reshape(-1)
    return {"codes": (code[::2] + 16 * code[1::2]).to(torch.uint8), **extra}


def dequantize_nf4(state, shape):
    if "s" in state:
        s = state["s"]
    else:
        each = torch.arange(len(state["byte"])) // 256
        s = state["byte"] * state["step"][each] + state["low"][each]
    c = state["codes"].long()
    values = nf4_codebook()[torch.stack((c % 16, c // 16), dim=-1)].reshape(-1, 64) * s[:, None]
    return values.reshape(-1)[: torch.Size(shape).numel()].reshape(shape)
