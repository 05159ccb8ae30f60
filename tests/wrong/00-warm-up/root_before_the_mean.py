# hint: the root was taken before the mean
def rms(x, dim):
    return x.float().pow(2).sqrt().mean(dim).to(x.dtype)
