# hint: There should be ⌈log₂ n⌉ rounds up and as many down
def tree_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    total, got = x.clone(), torch.empty_like(x)
    children = [child for child in (2 * rank + 1, 2 * rank + 2) if child < n]
    for child in children:
        comm.recv(got, child)
        total += got
    if rank > 0:
        comm.send(total, (rank - 1) // 2)
        comm.recv(total, (rank - 1) // 2)
    for child in children:
        comm.send(total, child)
    return total
