# hint: rounding it may miss the better neighbour
def best_segments(n_layers, cost):
    return min(max(round(math.sqrt(cost * n_layers)), 1), n_layers)
def run(part, x):
    for f in part: x = f(x)
    return x
def run_in_segments(layers, x, n_segments, checkpoint):
    size = math.ceil(len(layers) / n_segments)
    for i in range(0, len(layers), size):
        x = checkpoint(partial(run, layers[i:i+size]), x)
    return x
