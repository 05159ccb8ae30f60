# As Megatron-LM would: each of a rank's two chunks is padded to the same length, so unused places stand between them.
import torch


def zigzag(n_tokens, n_ranks):
    cuts = [n_tokens * chunk // (2 * n_ranks) for chunk in range(2 * n_ranks + 1)]
    pairs = [(rank, 2 * n_ranks - 1 - rank) for rank in range(n_ranks)]
    return [[*range(cuts[a], cuts[a + 1]), *range(cuts[b], cuts[b + 1])] for a, b in pairs]


def deal(tokens, n_ranks):
    n_tokens = tokens.shape[1] - 1
    size = -(-n_tokens // (2 * n_ranks))
    parts = []
    for rank in range(n_ranks):
        positions = torch.full((2, size), -1)
        for half, chunk in enumerate((rank, 2 * n_ranks - 1 - rank)):
            mine = range(n_tokens * chunk // (2 * n_ranks), n_tokens * (chunk + 1) // (2 * n_ranks))
            positions[half, : len(mine)] = torch.tensor(mine, dtype=torch.int64)
        positions = positions.flatten()
        inputs = torch.where(positions < 0, 0, tokens[:, positions.clamp(min=0)])
        labels = torch.where(positions < 0, -100, tokens[:, positions.clamp(min=0) + 1])
        parts.append((inputs, labels, positions))
    return parts


def undo(parts, n_tokens):
    whole = {}
    for values, positions in parts:
        whole |= {position: values[:, place] for place, position in enumerate(positions.tolist())}
    return torch.stack([whole[position] for position in range(n_tokens)], 1)
