# hint: No layer ran inside the `checkpoint` that the function is given
def best_segments(n_layers, cost):
    return min(range(1, n_layers + 1), key=lambda k: k + cost * n_layers / k)
def run_in_segments(layers, x, n_segments, checkpoint):
    size = math.ceil(len(layers) / n_segments)
    for i in range(0, len(layers), size):
        for f in layers[i:i+size]: x = f(x)
        x = checkpoint(lambda x: x, x)
    return x
