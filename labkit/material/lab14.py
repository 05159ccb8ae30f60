"""Lab 14: an all-reduce that the notebook measures beside the student's own, along a tree of two children each."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.ranks import Comm


def managers_tree(comm: Comm, x: Tensor) -> Tensor:
    """The sum of all ranks' x on every rank; rank r reports to rank (r - 1) // 2, and hears the sum from there."""
    rank, total, got = comm.rank, x.clone(), torch.empty_like(x)
    children = [child for child in (2 * rank + 1, 2 * rank + 2) if child < comm.world_size]
    for child in children:
        comm.recv(got, child)
        total += got
    if rank > 0:
        comm.send(total, (rank - 1) // 2)
        comm.recv(total, (rank - 1) // 2)
    for child in children:
        comm.send(total, child)
    return total
