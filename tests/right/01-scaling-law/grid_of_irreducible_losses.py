# tries many irreducible losses, with a line through the logarithms for each
import numpy as np


def fit_scaling_law(size, loss):
    x, y = np.log(size.numpy()), loss.numpy()
    low, high = 0.0, y.min() * 0.995
    for _ in range(5):
        tried = []
        for irreducible in np.linspace(low, high, 60):
            slope, intercept = np.polyfit(x, np.log(y - irreducible), 1)
            made = irreducible + np.exp(intercept + slope * x)
            tried.append((np.square(made / y - 1).sum(), irreducible, slope, intercept))
        _, irreducible, slope, intercept = min(tried)
        step = (high - low) / 59
        low, high = max(irreducible - step, 0.0), min(irreducible + step, y.min() * 0.995)
    return np.exp(intercept), -slope, irreducible
