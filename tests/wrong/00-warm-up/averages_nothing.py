# hint: nothing was averaged
def rms(x, dim):
    return torch.sqrt(x.float() ** 2).to(x.dtype)
