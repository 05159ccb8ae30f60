# the length of the first axis
def rms(x, dim):
    return (x.float().square().sum(dim) / x.shape[0]).sqrt().to(x.dtype)
