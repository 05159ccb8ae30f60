# hint: it is E itself that is off
def fit_scaling_law(size, loss):
    irreducible = 0.9 * loss.min().item()
    x, y = size.log(), (loss - irreducible).log()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    return (y.mean() - slope * x.mean()).exp().item(), -slope.item(), irreducible
