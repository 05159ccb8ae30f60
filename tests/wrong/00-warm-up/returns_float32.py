# hint: convert it back as the last step
def rms(x, dim):
    return x.float().pow(2).mean(dim).sqrt()
