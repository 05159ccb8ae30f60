def ring_all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    sizes = [x.numel() // n + (i >= n - x.numel() % n) for i in range(n)]
    chunks = [chunk.clone() for chunk in x.flatten().split(sizes)]
    for step in range(n - 1):
        got = torch.empty_like(chunks[(rank + step + 1) % n])
        receiving = comm.irecv(got, (rank + 1) % n)
        comm.send(chunks[(rank + step) % n], (rank - 1) % n)
        receiving.wait()
        chunks[(rank + step + 1) % n] += got
    for step in range(n - 1):
        receiving = comm.irecv(chunks[(rank + step) % n], (rank + 1) % n)
        comm.send(chunks[(rank + step - 1) % n], (rank - 1) % n)
        receiving.wait()
    return torch.cat(chunks).view_as(x)
