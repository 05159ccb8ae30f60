# hint: `dim` is not used
def rms(x, dim):
    return x.float().pow(2).mean().sqrt().to(x.dtype)
