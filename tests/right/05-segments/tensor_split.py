import numpy as np


def best_segments(n_layers, cost):
    ks = np.arange(1, n_layers + 1)
    return int(ks[np.argmin(ks + cost * n_layers / ks)])


def run_in_segments(layers, x, n_segments, checkpoint):
    class Segment:
        def __init__(self, indices):
            self.indices = indices

        def __call__(self, x):
            for i in self.indices:
                x = layers[i](x)
            return x

    for indices in np.array_split(np.arange(len(layers)), n_segments):
        print("segment", len(indices))
        x = checkpoint(Segment(indices), x)
    return x
