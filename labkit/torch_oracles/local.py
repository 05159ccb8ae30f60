"""Distributed tensors in one process, with the values of every rank: what a rank would hold, and none of the ranks.

PyTorch runs each operation once for every rank. Sizes and values are real, and so slow: for small tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from labkit.torch_oracles.private import fake_ranks, private


def on_all_ranks(fn: Callable[[], Any], n_ranks: int) -> list[Any]:
    """Call `fn()` once where each operation is that of `n_ranks` ranks; what each would return, in order.

    on_all_ranks(lambda: distribute_tensor(x, init_device_mesh("cpu", (4,)), [Shard(0)]), 4): the four shards.

    What fn returns is a tensor, or lists, tuples and dicts of them; of a distributed tensor it is the rank's own part.
    Raises RuntimeError in a process that has a process group already.
    """
    with fake_ranks(n_ranks):
        with private("LocalTensorMode")(n_ranks):
            result = fn()
        return [_of_rank(result, rank) for rank in range(n_ranks)]


def _of_rank(value: Any, rank: int) -> Any:
    if isinstance(value, DTensor):
        value = value._local_tensor
    if isinstance(value, private("LocalTensor")):
        value = value._local_tensors[rank]
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, list | tuple):
        return [_of_rank(item, rank) for item in value]
    if isinstance(value, dict):
        return {key: _of_rank(item, rank) for key, item in value.items()}
    return value
