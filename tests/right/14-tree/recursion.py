def tree_all_reduce(comm, x):
    def up_and_down(value, stride):
        """The sum of the ranks that are multiples of stride, on these."""
        if stride >= comm.world_size:
            return value
        place = comm.rank // stride
        if place % 2:
            comm.send(value, comm.rank - stride)
            total = torch.empty_like(value)
            comm.recv(total, comm.rank - stride)
            return total
        other = comm.rank + stride
        if other >= comm.world_size:
            return up_and_down(value, 2 * stride)
        got = torch.empty_like(value)
        comm.recv(got, other)
        total = up_and_down(value + got, 2 * stride)
        comm.send(total, other)
        return total

    return up_and_down(x.clone(), 1)
