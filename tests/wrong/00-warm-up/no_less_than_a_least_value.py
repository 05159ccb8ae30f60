# hint: raised to a least value
def rms(x, dim):
    return x.float().square().mean(dim).sqrt().clamp(min=1e-3).to(x.dtype)
