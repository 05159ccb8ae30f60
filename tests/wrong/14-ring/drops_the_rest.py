# hint: The elements at the end are wrong
def ring_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    flat = x.clone().reshape(-1)
    size = len(flat) // n
    chunks = [flat[i * size : (i + 1) * size] for i in range(n)]
    for step in range(2 * (n - 1)):
        mine = chunks[(rank - step - 1) % n]
        got = torch.empty_like(mine)
        work = comm.isend(chunks[(rank - step) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        if step < n - 1:
            mine += got
        else:
            mine.copy_(got)
    return flat.reshape(x.shape)
