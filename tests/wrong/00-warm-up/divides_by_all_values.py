# hint: the number of all values
def rms(x, dim):
    return (x.float().square().sum(dim) / x.numel()).sqrt().to(x.dtype)
