# hint: neither of the two bfloat16 neighbours
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    noise = torch.randint(0, 2**17, x.shape, generator=generator, dtype=torch.int32)
    toward_zero = (bits & -65536).view(torch.float32)
    rounded = ((bits + noise) & -65536).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, toward_zero)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)
