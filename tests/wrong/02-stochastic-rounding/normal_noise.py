# hint: uniform over exactly one bfloat16 step
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    noise = (torch.randn(x.shape, generator=generator) * 2**13 + 2**15).clamp(0, 2**16 - 1).to(torch.int32)
    toward_zero = (bits & -65536).view(torch.float32)
    rounded = ((bits + noise) & -65536).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, toward_zero)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)
