# hint: Work on a copy
def stochastic_round(x, generator):
    special = x[~x.isfinite()].clone()
    largest = torch.finfo(torch.bfloat16).max
    out = x.clamp(-largest, largest)
    bits = x.view(torch.int32)
    bits += torch.randint(0, 2**16, x.shape, generator=generator, dtype=torch.int32)
    rounded = (bits & -65536).view(torch.float32)
    rounded = torch.where(out.abs() == largest, out, rounded)
    rounded[~out.isfinite()] = 0
    rounded = rounded.to(torch.bfloat16)
    return rounded
