# hint: Zeros came back on every rank
def naive_all_reduce(comm, x):
    total, got = torch.zeros_like(x), torch.empty_like(x)
    if comm.rank > 0:
        comm.send(x, 0)
        comm.recv(total, 0)
        return total
    for other in range(1, comm.world_size):
        comm.recv(got, other)
        got += x
    for other in range(1, comm.world_size):
        comm.send(total, other)
    return total
