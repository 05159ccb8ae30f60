# hint: Two messages on their way into one tensor
import torch


def naive_all_reduce(comm, x):
    total, got = x.clone(), torch.empty_like(x)
    if comm.rank > 0:
        comm.send(x, 0)
        comm.recv(total, 0)
        return total
    works = [comm.irecv(got, other) for other in range(1, comm.world_size)]
    for work in works:
        work.wait()
        total += got
    for other in range(1, comm.world_size):
        comm.send(total, other)
    return total
