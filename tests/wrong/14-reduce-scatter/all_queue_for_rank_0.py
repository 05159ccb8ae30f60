# hint: Where all send to rank 0 first, and then to rank 1, they queue
def reduce_scatter(comm, output, input_list):
    total, got = input_list[comm.rank].clone(), torch.empty_like(output)
    for owner in range(comm.world_size):
        for other in range(comm.world_size):
            if other == owner:
                continue
            if comm.rank == other:
                comm.send(input_list[owner], owner)
            if comm.rank == owner:
                comm.recv(got, other)
                total += got
    output.copy_(total)


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
