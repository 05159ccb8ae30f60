# hint: the logarithm of a negative number
def fit_scaling_law(size, loss):
    irreducible = loss.mean().item()
    x, y = size.log(), (loss - irreducible).log()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    return (y.mean() - slope * x.mean()).exp().item(), -slope.item(), irreducible
