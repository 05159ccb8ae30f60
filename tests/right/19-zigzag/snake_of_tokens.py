# Deals token by token, there and back again, and keeps tuples; puts back with scatter.
import torch


def zigzag(n_tokens, n_ranks):
    hands = [[] for _ in range(n_ranks)]
    for position in range(n_tokens):
        turn = position % (2 * n_ranks)
        hands[min(turn, 2 * n_ranks - 1 - turn)].append(position)
    return hands


def deal(tokens, n_ranks):
    hands = zigzag(tokens.shape[1] - 1, n_ranks)
    positions = torch.nn.utils.rnn.pad_sequence([torch.tensor(hand, dtype=torch.long) for hand in hands], True, -1)
    real = positions >= 0
    inputs = torch.where(real, tokens[:, positions.clamp(min=0)], 0)
    labels = torch.where(real, tokens[:, positions.clamp(min=0) + 1], -100)
    return [(inputs[:, rank], labels[:, rank], positions[rank]) for rank in range(n_ranks)]


def undo(parts, n_tokens):
    values = torch.cat([value for value, _ in parts], 1)
    positions = torch.cat([position for _, position in parts])
    # One place more, for everything that is no token.
    whole = values.new_zeros(values.shape[0], n_tokens + 1, values.shape[2])
    whole[:, positions.where(positions >= 0, n_tokens)] = values
    return whole[:, :n_tokens]
