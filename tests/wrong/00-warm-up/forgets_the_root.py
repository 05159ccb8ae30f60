# hint: the root is missing
def rms(x, dim):
    return x.float().pow(2).mean(dim).to(x.dtype)
