# hint: something was added under the root
def rms(x, dim):
    return (x.float().square().mean(dim) + 1e-8).sqrt().to(x.dtype)
