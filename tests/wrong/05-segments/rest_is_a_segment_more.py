# hint: which became a segment more
def best_segments(n_layers, cost):
    root = (cost * n_layers) ** 0.5
    pair = {min(max(k, 1), n_layers) for k in (int(root), int(root) + 1)}
    return min(pair, key=lambda k: k + cost * n_layers / k)


def run_in_segments(layers, x, n_segments, checkpoint):
    size = len(layers) // n_segments
    for start in range(0, len(layers), size):

        def run(x, part=layers[start : start + size]):
            for layer in part:
                x = layer(x)
            return x

        x = checkpoint(run, x)
    return x
