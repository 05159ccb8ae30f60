# hint: The squares leave the range of float16
def rms(x, dim):
    mean_square = x.float().square().mean(dim).to(x.dtype)
    return torch.sqrt(mean_square)
