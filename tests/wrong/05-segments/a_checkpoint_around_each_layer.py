# hint: Every layer has a checkpoint of its own
def best_segments(n_layers, cost):
    root = (cost * n_layers) ** 0.5
    pair = {min(max(k, 1), n_layers) for k in (int(root), int(root) + 1)}
    return min(pair, key=lambda k: k + cost * n_layers / k)


def run_in_segments(layers, x, n_segments, checkpoint):
    for layer in layers:
        x = checkpoint(layer, x)
    return x
