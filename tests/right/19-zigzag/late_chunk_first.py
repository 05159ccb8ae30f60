# The late chunk stands before the early one, in numpy; longer chunks come first.
import numpy as np
import torch


def zigzag(n_tokens, n_ranks):
    chunks = np.array_split(np.arange(n_tokens), 2 * n_ranks)
    return [np.concatenate([chunks[2 * n_ranks - 1 - rank], chunks[rank]]) for rank in range(n_ranks)]


def deal(tokens, n_ranks):
    order = zigzag(tokens.shape[1] - 1, n_ranks)
    length = max(map(len, order))
    parts = []
    for mine in map(torch.from_numpy, order):
        pad = (0, length - len(mine))
        inputs, labels = tokens[:, mine], tokens[:, 1:][:, mine]
        parts.append([torch.nn.functional.pad(x, pad, value=v) for x, v in ((inputs, 0), (labels, -100), (mine, -1))])
    return parts


def undo(parts, n_tokens):
    positions = torch.cat([position[position >= 0] for _, position in parts])
    values = torch.cat([value[:, position >= 0] for value, position in parts], dim=1)
    return values[:, torch.argsort(positions)]
