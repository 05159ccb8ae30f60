# hint: Send it only when the tensors of all ranks are in it
def naive_all_reduce(comm, x):
    total = x.clone()
    if comm.rank == 0:
        got = torch.empty_like(x)
        for other in range(1, comm.world_size):
            comm.recv(got, other)
            total += got
            comm.send(total, other)
    else:
        comm.send(x, 0)
        comm.recv(total, 0)
    return total
