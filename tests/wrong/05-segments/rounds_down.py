# hint: other neighbour of the root of cL
def best_segments(n_layers, cost):
    return min(max(1, int((cost * n_layers) ** 0.5)), n_layers)


def run_in_segments(layers, x, n_segments, checkpoint):
    def run(first, last, x):
        for layer in layers[first:last]:
            x = layer(x)
        return x

    cuts = [round(i * len(layers) / n_segments) for i in range(n_segments + 1)]
    for first, last in zip(cuts, cuts[1:]):
        x = checkpoint(lambda x, first=first, last=last: run(first, last, x), x)
    return x
