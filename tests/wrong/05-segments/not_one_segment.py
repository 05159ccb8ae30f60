# hint: nor fewer than one
def best_segments(n_layers, cost):
    root = math.floor(math.sqrt(cost * n_layers))
    peak = lambda k: k + cost * n_layers / k
    return min(root + 1 if root and peak(root + 1) < peak(root) else root, n_layers)
def run(part, x):
    for f in part: x = f(x)
    return x
def run_in_segments(layers, x, n_segments, checkpoint):
    size = math.ceil(len(layers) / n_segments)
    for i in range(0, len(layers), size):
        x = checkpoint(partial(run, layers[i:i+size]), x)
    return x
