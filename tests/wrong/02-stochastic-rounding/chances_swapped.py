# hint: The two probabilities are swapped
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    low = bits & -(2**16)
    p = (bits & 0xFFFF) / 2**16
    up = torch.rand(x.shape, generator=generator) > p
    toward_zero = low.view(torch.float32)
    rounded = torch.where(up, low + 2**16, low).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, toward_zero)
    return torch.where(x.isfinite(), rounded, x).bfloat16()
