"""All-reduce in the ways of the course, from send and receive: what the tests and the benchmark hold counts against.

Each takes a communicator and a tensor and returns the sum over all ranks; the tensor stays as it is. Ranks in processes
import this module, so it imports little.
"""

from __future__ import annotations

import math

import torch

from labkit.ranks import Comm, init_mesh


def ring(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    """All-reduce in 2(n-1) rounds."""
    rank, n = comm.rank, comm.world_size
    parts = list(x.clone().tensor_split(n))
    for step in range(2 * (n - 1)):
        # The first n-1 steps add up, the others pass on.
        adds = step < n - 1
        sent = parts[(rank - step) % n]
        mine = parts[(rank - step - 1) % n]
        got = torch.empty_like(mine)
        work = comm.isend(sent, (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        mine.copy_(mine + got if adds else got)
    return torch.cat(parts)


def naive(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    """Everything to rank 0, which adds up and sends the sum to everybody."""
    total, got = x.clone(), torch.empty_like(x)
    if comm.rank:
        comm.send(total, 0)
        comm.recv(total, 0)
        return total
    for other in range(1, comm.world_size):
        comm.recv(got, other)
        total += got
    for work in [comm.isend(total, other) for other in range(1, comm.world_size)]:
        work.wait()
    return total


def tree(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    """Up a binomial tree and down again, in 2⌈log₂ n⌉ rounds."""
    rank, n = comm.rank, comm.world_size
    total, got = x.clone(), torch.empty_like(x)
    width = 1
    while width < n and rank % (2 * width) == 0:
        if rank + width < n:
            comm.recv(got, rank + width)
            total += got
        width *= 2
    if rank:
        comm.send(total, rank - width)
        comm.recv(total, rank - width)
    while width > 1:
        width //= 2
        if rank + width < n:
            comm.send(total, rank + width)
    return total


def butterfly(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    """Exchange with ever more distant partners: log₂ n rounds, or two more than ⌊log₂ n⌋ where n is no power of two."""
    rank, n = comm.rank, comm.world_size
    inner = 1 << (n.bit_length() - 1)
    total, got = x.clone(), torch.empty_like(x)
    if rank >= inner:
        comm.send(total, rank - inner)
        comm.recv(total, rank - inner)
        return total
    if rank + inner < n:
        comm.recv(got, rank + inner)
        total += got
    distance = 1
    while distance < inner:
        partner = rank ^ distance
        work = comm.isend(total, partner)
        comm.recv(got, partner)
        work.wait()
        total += got
        distance *= 2
    if rank + inner < n:
        comm.send(total, rank + inner)
    return total


def everything(comm: Comm, size: int, dtype: torch.dtype) -> dict[str, object]:
    """One of each collective, on values that differ between the ranks."""
    n = comm.world_size
    mine = (torch.arange(size) % 5 + comm.rank).to(dtype)
    found: dict[str, object] = {}
    for op in ("sum", "product", "min", "max", *(["avg"] if dtype.is_floating_point else [])):
        found[op] = mine.clone()
        comm.all_reduce(found[op], op)
    found["broadcast"] = mine.clone()
    comm.broadcast(found["broadcast"], n - 1)
    found["all_gather"] = [torch.empty_like(mine) for _ in range(n)]
    comm.all_gather(found["all_gather"], mine)
    found["reduce_scatter"] = torch.empty_like(mine)
    comm.reduce_scatter(found["reduce_scatter"], [mine + chunk for chunk in range(n)])
    found["all_gather_single"] = torch.empty(n * size, dtype=dtype)
    comm.all_gather_single(found["all_gather_single"], mine)
    found["reduce_scatter_single"] = torch.empty_like(mine)
    comm.reduce_scatter_single(found["reduce_scatter_single"], torch.cat([mine + chunk for chunk in range(n)]))
    # Rank r sends r + s elements to rank s.
    sizes = [comm.rank + other for other in range(n)]
    sent = torch.arange(sum(sizes)).to(dtype) + 100 * comm.rank
    found["all_to_all_single"] = torch.empty_like(sent)
    comm.all_to_all_single(found["all_to_all_single"], sent, sizes, sizes)
    found["all_to_all"] = [torch.empty_like(mine) for _ in range(n)]
    comm.all_to_all(found["all_to_all"], [mine + 10 * other for other in range(n)])
    # An odd number of bytes from rank 0, then one that such a number must not push out of place.
    kinds = [torch.uint8, torch.int64]
    found["mixed"] = [torch.empty(3, dtype=kinds[other % 2]) for other in range(n)]
    comm.all_to_all(found["mixed"], [torch.full((3,), comm.rank + to, dtype=kinds[comm.rank % 2]) for to in range(n)])
    return found


def in_groups(comm: Comm, size: int) -> list[object]:
    """Collectives, messages and barriers of rows and columns of a grid of two columns, and of a group of some ranks."""
    n = comm.world_size
    found: list[object] = []
    mesh = init_mesh(comm, (n // 2, 2), ("row", "column"))
    for name in ("column", "row"):
        group = mesh[name]
        found.append([group.rank, group.world_size, group.global_rank, mesh.get_local_rank(name), mesh.size(name)])
        found.append(everything(group, size, torch.float32))
        group.barrier()
        if group.world_size > 1:
            got, right = torch.empty(size), (group.rank + 1) % group.world_size
            work = group.isend(torch.full((size,), float(comm.rank)), right)
            group.recv(got, (group.rank - 1) % group.world_size)
            work.wait()
            found.append(got)
    some = comm.new_group([n - 1, 0])
    if some is not None:
        last = some.new_group([some.world_size - 1])
        x = torch.full((size,), float(comm.rank))
        some.all_reduce(x)
        found.append([x, None if last is None else last.global_rank])
    comm.barrier()
    return found


ALL = {"ring": ring, "naive": naive, "tree": tree, "butterfly": butterfly}


def rounds_of(name: str, n: int) -> int:
    """The rounds that an algorithm takes by its formula, if a rank sends and receives one message a round."""
    floor, ceil = int(math.log2(n)), math.ceil(math.log2(n))
    by_name = {"ring": 2 * (n - 1), "naive": 2 * (n - 1), "tree": 2 * ceil}
    return by_name.get(name, floor if floor == ceil else floor + 2)


def bytes_of(name: str, n: int, n_bytes: int) -> int:
    """The bytes that all ranks together send by its formula."""
    floor, ceil = int(math.log2(n)), math.ceil(math.log2(n))
    if name == "butterfly":
        inner = 2**floor
        return n_bytes * (inner * floor + (0 if floor == ceil else 2 * (n - inner)))
    return 2 * (n - 1) * n_bytes
