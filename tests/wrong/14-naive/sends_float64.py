# hint: in the dtype of x
def naive_all_reduce(comm, x):
    total, got = x.double(), torch.empty_like(x, dtype=torch.float64)
    if comm.rank > 0:
        comm.send(total, 0)
        comm.recv(total, 0)
        return total.to(x.dtype)
    for other in range(1, comm.world_size):
        comm.recv(got, other)
        total = total + got
    for other in range(1, comm.world_size):
        comm.send(total, other)
    return total.to(x.dtype)
