def naive_all_reduce(comm, x):
    total = x
    for other in reversed(range(1, comm.world_size)):
        if comm.rank == other:
            comm.send(x, 0)
        elif comm.rank == 0:
            got = torch.full_like(x, 1)
            comm.recv(got, other)
            total = total + got
    if comm.rank == 0:
        for other in range(1, comm.world_size):
            comm.send(total, other)
    else:
        total = torch.empty(x.shape, dtype=x.dtype)
        comm.recv(total, 0)
    return total
