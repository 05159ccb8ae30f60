# hint: Let each rank beyond hand its tensor to one inside
def butterfly_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    inner = 1 << (n.bit_length() - 1)
    total, got = x.clone(), torch.empty_like(x)
    if rank >= inner:
        comm.send(total, rank - inner)
        return total
    if rank + inner < n:
        comm.recv(got, rank + inner)
        total += got
    distance = 1
    while distance < inner:
        work = comm.isend(total, rank ^ distance)
        comm.recv(got, rank ^ distance)
        work.wait()
        total += got
        distance *= 2
    return total
