# hint: The ranks added up in different orders
def ring_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    total, passing = x.clone(), x.clone()
    for _ in range(n - 1):
        got = torch.empty_like(x)
        work = comm.isend(passing, (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        total += got
        passing = got
    return total
