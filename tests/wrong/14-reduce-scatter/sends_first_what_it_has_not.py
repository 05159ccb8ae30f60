# hint: The first part that a rank sends is its own
def reduce_scatter(comm: Comm, output: Tensor, input_list: list[Tensor]) -> None:
    """Write the sum over all ranks of their input_list[comm.rank] into output."""
    n, rank = comm.world_size, comm.rank
    parts = [part.clone() for part in input_list]
    for k in range(n - 1):
        mine = parts[(rank - 2 - k) % n]
        got = torch.empty_like(mine)
        work = comm.isend(parts[(rank - 1 - k) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        mine += got
    output.copy_(parts[rank])


def all_gather(comm: Comm, output_list: list[Tensor], tensor: Tensor) -> None:
    """Write the tensor of each rank r into output_list[r]."""
    n, rank = comm.world_size, comm.rank
    output_list[rank].copy_(tensor)
    for k in range(n - 1):
        work = comm.isend(output_list[(rank - 1 - k) % n], (rank + 1) % n)
        comm.recv(output_list[(rank - 2 - k) % n], (rank - 1) % n)
        work.wait()


def all_reduce(comm: Comm, x: Tensor) -> Tensor:
    """The sum of all ranks' x, on every rank, from reduce_scatter and all_gather."""
    parts = list(x.reshape(-1).tensor_split(comm.world_size))
    output = torch.empty_like(parts[comm.rank])
    reduce_scatter(comm, output, parts)
    gathered = [torch.empty_like(part) for part in parts]
    all_gather(comm, gathered, output)
    return torch.cat(gathered).reshape(x.shape)
