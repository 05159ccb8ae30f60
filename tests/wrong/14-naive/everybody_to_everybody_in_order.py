# hint: If everybody sends to everybody, there are n(n-1)
def naive_all_reduce(comm, x):
    others = [rank for rank in range(comm.world_size) if rank != comm.rank]
    works = [comm.isend(x, other) for other in others]
    tensors = {comm.rank: x}
    for other in others:
        tensors[other] = torch.empty_like(x)
        comm.recv(tensors[other], other)
    for work in works:
        work.wait()
    total = tensors[0].clone()
    for rank in range(1, comm.world_size):
        total += tensors[rank]
    return total
