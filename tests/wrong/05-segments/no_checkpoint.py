# hint: No layer ran inside the `checkpoint` that the function is given
def best_segments(n_layers, cost):
    root = (cost * n_layers) ** 0.5
    pair = {min(max(k, 1), n_layers) for k in (int(root), int(root) + 1)}
    return min(pair, key=lambda k: k + cost * n_layers / k)


def run_in_segments(layers, x, n_segments, checkpoint):
    for layer in layers:
        x = layer(x)
    return x
