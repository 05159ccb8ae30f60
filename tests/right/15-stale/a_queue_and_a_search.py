from collections import deque


def stale_sgd(gradient, weights, lr, delay, n_steps):
    recent = deque([weights] * (delay + 1), maxlen=delay + 1)
    path = []
    for _ in range(n_steps):
        path.append(recent[-1] - lr * gradient(recent[0]))
        recent.append(path[-1])
    return path


def largest_stable_lr(curvature, delay):
    """Runs of a thousand steps on w**2 / 2, and the step size halved in between."""
    low, high = 0.0, 2.5
    for _ in range(12):
        middle = (low + high) / 2
        newest, recent = 1.0, deque([1.0] * (delay + 1), maxlen=delay + 1)
        largest = []
        for _ in range(3000):
            newest -= middle * recent[0]
            recent.append(newest)
            largest.append(abs(newest))
            if abs(newest) > 1e9:
                break
        if max(largest[-200:]) < max(largest[:200]):
            low = middle
        else:
            high = middle
    return low / curvature
