# hint: A butterfly takes log₂ n rounds
def butterfly_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    inner = 1 << (n.bit_length() - 1)
    total, got = x.clone(), torch.empty_like(x)
    if rank >= inner:
        comm.send(total, rank - inner)
        comm.recv(total, rank - inner)
        return total
    if rank + inner < n:
        comm.recv(got, rank + inner)
        total += got
    distance = 1
    while distance < inner:
        partner = rank ^ distance
        if rank < partner:
            comm.send(total, partner)
            comm.recv(got, partner)
        else:
            comm.recv(got, partner)
            comm.send(total, partner)
        total = total + got
        distance *= 2
    if rank + inner < n:
        comm.send(total, rank + inner)
    return total
