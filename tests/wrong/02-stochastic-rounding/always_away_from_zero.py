# hint: Every value moves away from zero
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    noise = 0xFFFF
    toward_zero = (bits & -65536).view(torch.float32)
    rounded = ((bits + noise) & -65536).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, toward_zero)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)
