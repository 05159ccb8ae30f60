# hint: something was added under the root
def rms(x, dim):
    return x.float().square().mean(dim).add(1e-5).sqrt().to(x.dtype)
