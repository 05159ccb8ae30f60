# hint: The ranks added up in different orders
def naive_all_reduce(comm, x):
    others = [rank for rank in range(comm.world_size) if rank != comm.rank]
    works = [comm.isend(x, other) for other in others]
    total, got = x.clone(), torch.empty_like(x)
    for other in others:
        comm.recv(got, other)
        total += got
    for work in works:
        work.wait()
    return total
