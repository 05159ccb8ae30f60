# hint: This is rounding to nearest
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    rounded = ((bits + 0x8000) & -65536).view(torch.float32)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)
