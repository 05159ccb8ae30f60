# hint: Adding to its bits
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    noise = torch.randint(0, 2**16, x.shape, generator=generator, dtype=torch.int32)
    rounded = ((bits + noise) & -65536).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, (bits & -65536).view(torch.float32))
    return rounded.to(torch.bfloat16)
