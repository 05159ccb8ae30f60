def tree_all_reduce(comm, x):
    n = comm.world_size
    total, got = x.clone(), torch.empty_like(x)
    distances = [1 << k for k in range((n - 1).bit_length())]
    far = distances[::-1]

    def below(distance):
        return comm.rank < distance

    for distance in far:
        if below(distance) and comm.rank + distance < n:
            comm.recv(got, comm.rank + distance)
            total = got + total
        elif distance <= comm.rank < 2 * distance:
            comm.send(total, comm.rank - distance)
    for distance in distances:
        if below(distance) and comm.rank + distance < n:
            comm.send(total, comm.rank + distance)
        elif distance <= comm.rank < 2 * distance:
            comm.recv(total, comm.rank - distance)
    return total
