# upper half in int16
def stochastic_round(x, generator):
    b = x.view(torch.int32)
    n = torch.randint(0, 65536, x.shape, generator=generator)
    up = ((b & 0xFFFF) + n) >= 65536
    top = b >> 16
    bumped = torch.where(up, top + 1, top)
    special = (bumped & 0x7F80) == 0x7F80
    bumped = torch.where(special, top, bumped)
    out = bumped.to(torch.int16).view(torch.bfloat16)
    return torch.where(x.isfinite(), out, x.bfloat16())
