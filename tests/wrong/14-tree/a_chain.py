# hint: There should be ⌈log₂ n⌉ rounds up and as many down
def tree_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    total, got = x.clone(), torch.empty_like(x)
    if rank + 1 < n:
        comm.recv(got, rank + 1)
        total += got
    if rank > 0:
        comm.send(total, rank - 1)
        comm.recv(total, rank - 1)
    if rank + 1 < n:
        comm.send(total, rank + 1)
    return total
