def ring_all_reduce(comm, x):
    """Starts with the chunk before its own; chunks kept by number, transfers in a list."""
    rank, n = comm.rank, comm.world_size
    if n == 1:
        return x.clone()
    before, after = (rank - 1) % n, (rank + 1) % n
    chunks = {i: chunk.contiguous().clone() for i, chunk in enumerate(torch.tensor_split(x.flatten(), n))}
    for round_ in range(2 * n - 2):
        outgoing, incoming = (before - round_) % n, (before - 1 - round_) % n
        buffer = torch.zeros_like(chunks[incoming])
        works = [comm.irecv(buffer, before), comm.isend(chunks[outgoing], after)]
        for work in works:
            work.wait()
        chunks[incoming] = buffer + chunks[incoming] if round_ < n - 1 else buffer
    return torch.cat([chunks[i] for i in range(n)]).reshape(x.shape)
