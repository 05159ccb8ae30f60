# hint: Draw one for every element
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    shape = [n if axis == 0 else 1 for axis, n in enumerate(x.shape)]
    noise = torch.randint(2**16, shape, generator=generator, dtype=torch.int32)
    rounded = ((bits + noise) & -(2**16)).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, (bits & -(2**16)).view(torch.float32))
    return torch.where(x.isfinite(), rounded, x).bfloat16()
