# hint: The draws did not come from
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    noise = torch.randint(0, 2**16, x.shape, dtype=torch.int32)
    toward_zero = (bits & -65536).view(torch.float32)
    rounded = ((bits + noise) & -65536).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, toward_zero)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)
