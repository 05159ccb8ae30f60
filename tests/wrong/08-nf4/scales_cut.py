# hint: A scale is up to a whole step off
def nf4_codebook() -> Float32[Tensor, "16"]:
    """The 16 values of NormalFloat, from -1 to 1 in ascending order."""
    tail = 0.9677083
    positive = torch.special.ndtri(torch.linspace(tail, 0.5, 9).double())[:-1]
    negative = -torch.special.ndtri(torch.linspace(tail, 0.5, 8).double())[:-1]
    codes = torch.cat([negative, torch.zeros(1), positive]).sort().values
    return (codes / codes.max()).float()


def quantize_nf4(w: Float32[Tensor, "*shape"], double: bool = False) -> dict[str, Tensor]:
    """All that is kept of w: 4-bit codes and one scale per 64 weights, with `double` of 8 bits."""
    blocks = nn.functional.pad(w.flatten(), (0, -w.numel() % 64)).view(-1, 64)
    scales = blocks.abs().amax(1)
    middles = (nf4_codebook()[1:] + nf4_codebook()[:-1]) / 2
    ratios = blocks / torch.where(scales > 0, scales, 1.0)[:, None]
    codes = torch.bucketize(ratios, middles.to(w.device)).to(torch.uint8).flatten()
    state = {"packed": codes[0::2] * 16 + codes[1::2]}
    if not double:
        return state | {"scales": scales}
    mean = scales.mean()
    groups = nn.functional.pad(scales - mean, (0, -len(scales) % 256)).view(-1, 256)
    steps = groups.abs().amax(1) / 127
    q = (groups / torch.where(steps > 0, steps, 1.0)[:, None]).trunc()
    q = q.to(torch.int8).flatten()[: len(scales)]
    return state | {"q": q, "steps": steps, "mean": mean}


def dequantize_nf4(
    state: dict[str, Tensor], shape: tuple[int, ...]
) -> Float32[Tensor, "*shape"]:
    """The weight that quantize_nf4 has kept, in its shape."""
    packed = state["packed"].int()
    codes = torch.stack([packed >> 4, packed & 15], 1).view(-1, 64)
    if "scales" in state:
        scales = state["scales"]
    else:
        steps = state["steps"].repeat_interleave(256)[: len(state["q"])]
        scales = state["q"] * steps + state["mean"]
    values = nf4_codebook().to(packed.device)[codes] * scales[:, None]
    return values.flatten()[: math.prod(shape)].view(shape)
