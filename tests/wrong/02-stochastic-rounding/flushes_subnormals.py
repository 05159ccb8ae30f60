# hint: bfloat16 has subnormals too
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    noise = torch.randint(2**16, x.shape, generator=generator, dtype=torch.int32)
    rounded = ((bits + noise) & -(2**16)).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, (bits & -(2**16)).view(torch.float32))
    rounded = torch.where(rounded.abs() < torch.finfo(torch.bfloat16).tiny, rounded * 0.0, rounded)
    return torch.where(x.isfinite(), rounded, x).bfloat16()
