# hint: a mean divides by n
def rms(x, dim):
    return (x.float().square().sum(dim) / (x.shape[dim] - 1)).sqrt().to(x.dtype)
