# hint: Rank 0 has the sum and the others do not
def naive_all_reduce(comm, x):
    total, got = x.clone(), torch.empty_like(x)
    if comm.rank > 0:
        comm.send(x, 0)
        return total
    for other in range(1, comm.world_size):
        comm.recv(got, other)
        total += got
    return total
