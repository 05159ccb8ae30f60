import math


def best_segments(n_layers, cost):
    best, best_peak = None, math.inf
    for k in range(n_layers, 0, -1):
        peak = k + cost * (n_layers / k)
        if peak < best_peak:
            best, best_peak = k, peak
    return best


def run_in_segments(layers, x, n_segments, checkpoint):
    size = math.ceil(len(layers) / n_segments)

    def run(x, part):
        for layer in part:
            x = layer(x)
        return x

    parts = [layers[i : i + size] for i in range(0, len(layers), size)]
    for part in parts[:-1]:
        x = checkpoint(run, x, part)
    return run(x, parts[-1])
