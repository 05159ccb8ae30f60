# hint: smallest loss of the table, or larger
def fit_scaling_law(size, loss):
    irreducible = loss.min()
    left = loss - irreducible
    x, y = size[left > 0].log(), left[left > 0].log()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    return (y.mean() - slope * x.mean()).exp().item(), -slope.item(), irreducible.item()
