# hint: That partner does not exist
def tree_all_reduce(comm: Comm, x: Tensor) -> Tensor:
    """The sum of all ranks' x, on every rank, up a tree with its root at rank 0 and down again."""
    n, rank = comm.world_size, comm.rank
    total, got = x.clone(), torch.empty_like(x)
    width = 1
    while width < n and rank % (2 * width) == 0:
        comm.recv(got, rank + width)
        total += got
        width *= 2
    if rank != 0:
        comm.send(total, rank - width)
        comm.recv(total, rank - width)
    while width > 1:
        width //= 2
        comm.send(total, rank + width)
    return total
