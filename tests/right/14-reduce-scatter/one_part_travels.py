def reduce_scatter(comm, output, input_list):
    rank, n = comm.rank, comm.world_size
    passing = input_list[(rank + 1) % n].clone()
    for step in range(1, n):
        arriving = torch.empty_like(input_list[(rank + 1 + step) % n])
        receiving = comm.irecv(arriving, (rank + 1) % n)
        comm.send(passing, (rank - 1) % n)
        receiving.wait()
        passing = arriving + input_list[(rank + 1 + step) % n]
    output.copy_(passing if n > 1 else input_list[0])


def all_gather(comm, output_list, tensor):
    rank, n = comm.rank, comm.world_size
    passing = tensor
    output_list[rank].copy_(tensor)
    for step in range(1, n):
        arriving = torch.empty_like(output_list[(rank + step) % n])
        receiving = comm.irecv(arriving, (rank + 1) % n)
        comm.send(passing, (rank - 1) % n)
        receiving.wait()
        output_list[(rank + step) % n].copy_(arriving)
        passing = arriving


def all_reduce(comm, x):
    parts = x.reshape(-1).tensor_split(comm.world_size)
    mine = torch.empty_like(parts[comm.rank])
    reduce_scatter(comm, mine, parts)
    gathered = [torch.empty_like(part) for part in parts]
    all_gather(comm, gathered, mine)
    return torch.cat(gathered).reshape(x.shape)
