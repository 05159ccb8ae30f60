# hint: straight line through the losses themselves
def fit_scaling_law(size, loss):
    x = size.log()
    slope = ((x - x.mean()) * (loss - loss.mean())).sum() / (x - x.mean()).square().sum()
    return (loss.mean() - slope * x.mean()).item(), -slope.item(), 0.0
