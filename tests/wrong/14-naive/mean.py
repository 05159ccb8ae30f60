# hint: That is the mean
def naive_all_reduce(comm, x):
    n = comm.world_size
    if comm.rank == 0:
        total = x.clone()
        for src in range(1, n):
            buf = torch.zeros_like(x)
            comm.recv(buf, src)
            total = total + buf
        for dst in range(1, n):
            comm.send(total / n, dst)
        return total / n
    comm.send(x, 0)
    out = torch.empty_like(x)
    comm.recv(out, 0)
    return out
