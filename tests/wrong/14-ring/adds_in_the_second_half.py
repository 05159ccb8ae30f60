# hint: In some chunk a rank's tensor is counted twice
def ring_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    chunks = list(x.clone().reshape(-1).tensor_split(n))
    for step in range(2 * (n - 1)):
        mine = chunks[(rank - step - 1) % n]
        got = torch.empty_like(mine)
        work = comm.isend(chunks[(rank - step) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        mine += got
    return torch.cat(chunks).reshape(x.shape)
