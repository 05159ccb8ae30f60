# hint: Rank 0 has the sum and the others do not
def naive_all_reduce(comm, x):
    n = comm.world_size
    if comm.rank == 0:
        total = x.clone()
        for src in range(1, n):
            buf = torch.zeros_like(x)
            comm.recv(buf, src)
            total = total + buf
        return total
    comm.send(x, 0)
    return torch.full_like(x, 1e30) if x.is_floating_point() else torch.full_like(x, 77)
