# hint: Every rank returned its own tensor
def ring_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    chunks = list(x.clone().reshape(-1).tensor_split(n))
    for step in range(2 * (n - 1)):
        mine = chunks[(rank - step - 1) % n]
        got = torch.empty_like(mine)
        work = comm.isend(0 * chunks[(rank - step) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        if step < n - 1:
            mine += got
        else:
            pass
    return torch.cat(chunks).reshape(x.shape)
