# hint: Every rank returned its own tensor
def naive_all_reduce(comm, x):
    got = torch.empty_like(x)
    if comm.rank > 0:
        comm.send(x, 0)
        comm.recv(got, 0)
        return x.clone()
    for other in range(1, comm.world_size):
        comm.recv(got, other)
    for other in range(1, comm.world_size):
        comm.send(x, other)
    return x.clone()
