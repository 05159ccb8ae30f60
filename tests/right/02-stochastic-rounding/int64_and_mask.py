import warnings


def stochastic_round(x, generator):
    warnings.warn("rolling dice")
    flat = x.reshape(-1)
    bits = flat.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    sign, magnitude = bits & 0x80000000, bits & 0x7FFFFFFF
    noise = torch.floor(torch.rand(flat.shape, generator=generator, device=x.device, dtype=torch.float64) * 65536).long()
    magnitude = torch.minimum(magnitude + noise, torch.tensor(0x7F7FFFFF, device=x.device)) >> 16
    pattern = (sign >> 16) | magnitude
    pattern = torch.where(pattern >= 2**15, pattern - 2**16, pattern).to(torch.int16)
    out = pattern.view(torch.bfloat16)
    return torch.where(flat.isfinite(), out, flat.bfloat16()).reshape(x.shape)
