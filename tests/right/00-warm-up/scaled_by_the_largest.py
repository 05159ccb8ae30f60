def rms(x, dim):
    largest = x.abs().amax(dim, keepdim=True)
    scaled = x / largest.clamp(min=torch.finfo(x.dtype).smallest_normal)
    return (largest.squeeze(dim) * (scaled * scaled).mean(dim).sqrt()).to(x.dtype)
