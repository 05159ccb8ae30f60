# hint: More axes than `dim` were averaged
def rms(x, dim):
    rows = x.movedim(dim, 0) if dim not in (-1, x.ndim - 1) else x
    wide = rows.float().square()
    mean = wide.mean(0) if rows is not x else wide.flatten(1).mean(1)
    return mean.sqrt().to(x.dtype)
