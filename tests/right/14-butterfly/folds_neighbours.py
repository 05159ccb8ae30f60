def butterfly_all_reduce(comm, x):
    """The first ranks work in pairs, so that a power of two of them is left."""
    n, rank = comm.world_size, comm.rank
    inner = 1
    while 2 * inner <= n:
        inner *= 2
    extra = n - inner
    total, got = x.clone(), torch.empty_like(x)
    if rank < 2 * extra and rank % 2:
        comm.send(total, rank - 1)
        comm.recv(total, rank - 1)
        return total
    if rank < 2 * extra:
        comm.recv(got, rank + 1)
        total.add_(got)
    place = rank // 2 if rank < 2 * extra else rank - extra

    def rank_at(place):
        return 2 * place if place < extra else place + extra

    bit = 1
    while bit < inner:
        partner = rank_at(place ^ bit)
        work = comm.isend(total, partner)
        comm.recv(got, partner)
        work.wait()
        total.add_(got)
        bit <<= 1
    if rank < 2 * extra:
        comm.send(total, rank + 1)
    return total
