# Sorts all passes by the number of forward passes that come before them.
def interleaved(rank, n_ranks, n_chunks, n_microbatches):
    groups = [range(first, first + n_ranks) for first in range(0, n_microbatches, n_ranks)]
    forward = [("F", chunk, i) for group in groups for chunk in range(n_chunks) for i in group]
    backward = [("B", chunk, i) for group in groups for chunk in reversed(range(n_chunks)) for i in group]
    ahead = 2 * (n_ranks - rank - 1) + (n_chunks - 1) * n_ranks
    due = [(k, 0, entry) for k, entry in enumerate(forward)]
    due += [(k + ahead, 1, entry) for k, entry in enumerate(backward)]
    return [entry for _, _, entry in sorted(due)]
