# hint: This is the standard deviation
def rms(x, dim):
    return x.float().std(dim).to(x.dtype)
