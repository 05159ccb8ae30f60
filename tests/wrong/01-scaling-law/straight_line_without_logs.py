# hint: straight line through the losses themselves
def fit_scaling_law(size, loss):
    slope = ((size - size.mean()) * (loss - loss.mean())).sum() / (size - size.mean()).square().sum()
    return (loss.mean() - slope * size.mean()).item(), -slope.item(), 0.0
