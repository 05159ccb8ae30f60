# hint: is still there with length 1
def rms(x, dim):
    return x.float().pow(2).mean(dim, keepdim=True).sqrt().to(x.dtype)
