# hint: It is right for a power of two only
def tree_all_reduce(comm, x):
    rank, n = comm.rank, 2 ** (comm.world_size.bit_length() - 1)
    total, got = x.clone(), torch.empty_like(x)
    if rank >= n:
        return total
    width = 1
    while width < n and rank % (2 * width) == 0:
        comm.recv(got, rank + width)
        total += got
        width *= 2
    if rank > 0:
        comm.send(total, rank - width)
        comm.recv(total, rank - width)
    while width > 1:
        width //= 2
        comm.send(total, rank + width)
    return total
