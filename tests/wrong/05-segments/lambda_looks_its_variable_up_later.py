# hint: In backward other layers ran than in forward
def best_segments(n_layers, cost):
    root = (cost * n_layers) ** 0.5
    pair = {min(max(k, 1), n_layers) for k in (int(root), int(root) + 1)}
    return min(pair, key=lambda k: k + cost * n_layers / k)


def run_in_segments(layers, x, n_segments, checkpoint):
    def run(first, last, x):
        for layer in layers[first:last]:
            x = layer(x)
        return x

    cuts = [round(i * len(layers) / n_segments) for i in range(n_segments + 1)]
    for i in range(n_segments):
        x = checkpoint(lambda x: run(cuts[i], cuts[i + 1], x), x)
    return x
