# hint: A finite x must stay finite
def stochastic_round(x, generator):
    noise = torch.randint(0, 2**16, x.shape, generator=generator, dtype=torch.int32)
    rounded = ((x.view(torch.int32) + noise) & -65536).view(torch.float32)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)
