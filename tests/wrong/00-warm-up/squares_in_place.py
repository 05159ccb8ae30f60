# hint: Work on a copy
def rms(x, dim):
    squares = x.float()
    squares *= squares
    return squares.mean(dim).sqrt().to(x.dtype)
