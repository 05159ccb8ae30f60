# hint: The values did not come over the network
def naive_all_reduce(comm, x):
    seen[comm.rank] = x.clone()
    comm.barrier()
    total = torch.zeros_like(x)
    for rank in range(comm.world_size):
        total += seen[rank]
    comm.barrier()
    return total


seen = {}
