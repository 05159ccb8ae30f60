# noise taken away
def stochastic_round(x, generator):
    b = x.view(torch.int32)
    noise = torch.randint(0, 2**16, x.shape, generator=generator, dtype=torch.int32)
    r = ((b + 0xFFFF - noise) & -(2**16)).view(torch.float32)
    r = torch.where(r.isfinite(), r, (b & -(2**16)).view(torch.float32))
    return torch.where(x.isfinite(), r, x).to(torch.bfloat16)
