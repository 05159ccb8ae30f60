# hint: There should be ⌈log₂ n⌉ rounds up and as many down
def tree_all_reduce(comm, x):
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
    distance = 1
    while distance < width:
        if rank + distance < n:
            comm.send(total, rank + distance)
        distance *= 2
    return total
