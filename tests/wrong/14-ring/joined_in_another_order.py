# hint: in the wrong places
def ring_all_reduce(comm, x):
    n, r = comm.world_size, comm.rank
    chunks = list(x.clone().reshape(-1).tensor_split(n))
    chunks = chunks[r:] + chunks[:r]
    for step in range(2 * (n - 1)):
        mine = chunks[(-step - 1) % n]
        got = torch.empty_like(mine)
        w = comm.isend(chunks[-step % n], (r + 1) % n); comm.recv(got, (r - 1) % n); w.wait()
        if step < n - 1: mine += got
        else: mine.copy_(got)
    return torch.cat(chunks).reshape(x.shape)
