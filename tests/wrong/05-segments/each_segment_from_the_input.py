# hint: Every segment began with the first x
def best_segments(n_layers, cost):
    return min(range(1, n_layers + 1), key=lambda k: k + cost * n_layers / k)
def run(part, x):
    for f in part: x = f(x)
    return x
def run_in_segments(layers, x, n_segments, checkpoint):
    size = math.ceil(len(layers) / n_segments)
    for i in range(0, len(layers), size):
        out = checkpoint(partial(run, layers[i:i+size]), x)
    return out
