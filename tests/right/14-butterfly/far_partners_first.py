def butterfly_all_reduce(comm, x):
    n, rank = comm.world_size, comm.rank
    inner = 2 ** (len(bin(n)) - 3)
    total = x.clone()
    if rank >= inner:
        comm.send(x, rank - inner)
    elif rank + inner < n:
        got = torch.empty_like(x)
        comm.recv(got, rank + inner)
        total = got + total
    if rank < inner:
        distance = inner // 2
        while distance:
            got = torch.empty_like(x)
            receiving = comm.irecv(got, rank ^ distance)
            sending = comm.isend(total, rank ^ distance)
            receiving.wait()
            sending.wait()
            total = got + total
            distance //= 2
    if rank + inner < n:
        comm.send(total, rank + inner)
    elif rank >= inner:
        comm.recv(total, rank - inner)
    return total
