# bernoulli carry
def stochastic_round(x, generator):
    b = x.view(torch.int32)
    p = (b & 0xFFFF).float() / 2**16
    p = torch.where(x.isfinite(), p, torch.zeros_like(p))
    carry = torch.bernoulli(p, generator=generator).int() << 16
    r = ((b & -65536) + carry).view(torch.float32)
    m = torch.finfo(torch.bfloat16).max
    r = torch.where(x.isfinite(), r.clamp(-m, m), x)
    return r.bfloat16()
