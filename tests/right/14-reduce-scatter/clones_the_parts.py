# adds into copies of the parts
def reduce_scatter(comm, output, input_list):
    rank, n = comm.rank, comm.world_size
    parts = [part.clone() for part in input_list]
    for step in range(n - 1):
        mine = parts[(rank - 2 - step) % n]
        got = torch.empty_like(mine)
        work = comm.isend(parts[(rank - 1 - step) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        mine += got
    output.copy_(parts[rank])


def all_gather(comm, output_list, tensor):
    rank, n = comm.rank, comm.world_size
    output_list[rank].copy_(tensor)
    for step in range(n - 1):
        work = comm.isend(output_list[(rank - step) % n], (rank + 1) % n)
        comm.recv(output_list[(rank - 1 - step) % n], (rank - 1) % n)
        work.wait()


def all_reduce(comm, x):
    parts = list(x.reshape(-1).tensor_split(comm.world_size))
    mine = torch.empty_like(parts[comm.rank])
    reduce_scatter(comm, mine, parts)
    gathered = [torch.empty_like(part) for part in parts]
    all_gather(comm, gathered, mine)
    return torch.cat(gathered).reshape(x.shape)
