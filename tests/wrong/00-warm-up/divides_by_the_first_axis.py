# hint: the length of another axis
def rms(x, dim):
    return (x.float().square().sum(dim) / x.shape[0]).sqrt().to(x.dtype)
