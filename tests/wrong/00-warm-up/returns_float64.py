# hint: convert it back as the last step
def rms(x, dim):
    return torch.sqrt(torch.mean(x.double() ** 2, dim=dim))
