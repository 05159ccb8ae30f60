# hint: in each of 2(n-1) rounds one chunk to the next rank
def ring_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    total, got = x.clone(), torch.empty_like(x)
    if n == 1:
        return total
    if rank > 0:
        comm.recv(got, rank - 1)
        total += got
    if rank < n - 1:
        comm.send(total, rank + 1)
        comm.recv(total, (rank - 1) % n)
    if rank != n - 2:
        comm.send(total, (rank + 1) % n)
    return total
