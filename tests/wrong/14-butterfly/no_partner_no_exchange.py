# hint: Let each rank past the largest power of two send its tensor
def butterfly_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    total, got = x.clone(), torch.empty_like(x)
    inner = 1 << (n.bit_length() - 1)
    distance = 1
    while distance < inner and rank < inner:
        work = comm.isend(total, rank ^ distance)
        comm.recv(got, rank ^ distance)
        work.wait()
        total += got
        distance *= 2
    return total
