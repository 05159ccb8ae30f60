# Two walks over groups, chunks and micro-batches, as generators.
def interleaved(rank, n_ranks, n_chunks, n_microbatches):
    def walk(kind, chunks):
        for first in range(0, n_microbatches, n_ranks):
            for chunk in chunks:
                for i in range(first, first + n_ranks):
                    yield kind, chunk, i

    forward = walk("F", range(n_chunks))
    backward = walk("B", range(n_chunks - 1, -1, -1))
    ahead = 2 * (n_ranks - rank - 1) + (n_chunks - 1) * n_ranks
    order = [one for _, one in zip(range(ahead), forward)]
    for one in forward:
        order += [one, next(backward)]
    return order + list(backward)
