# hint: in each of 2(n-1) rounds one chunk to the next rank
def ring_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    total, got = x.clone(), torch.empty_like(x)
    width = 1
    while width < n and rank % (2 * width) == 0:
        if rank + width < n:
            comm.recv(got, rank + width)
            total += got
        width *= 2
    if rank > 0:
        comm.send(total, rank - width)
        comm.recv(total, rank - width)
    while width > 1:
        width //= 2
        if rank + width < n:
            comm.send(total, rank + width)
    return total
