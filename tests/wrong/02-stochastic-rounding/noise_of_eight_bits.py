# hint: The noise is too narrow
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    noise = torch.randint(2**8, x.shape, generator=generator, dtype=torch.int32)
    toward_zero = (bits & -(2**16)).view(torch.float32)
    rounded = ((bits + noise) & -(2**16)).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, toward_zero)
    return torch.where(x.isfinite(), rounded, x).bfloat16()
