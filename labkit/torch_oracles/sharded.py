"""The collectives of a training step under `fully_shard`, on so many ranks as are asked for: which, and of how much.

The ranks are not there: a fake process group returns at once, so values are worth nothing, and calls and sizes are
those of PyTorch. One rank's shards have to fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils._python_dispatch import TorchDispatchMode

from labkit.torch_oracles.private import fake_ranks

_CALLS = {
    "_allgather_base_": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "allreduce_": "all_reduce",
    "broadcast_": "broadcast",
}
_TIMES_SENT = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}


@dataclass(frozen=True)
class Collective:
    """One call, as every rank makes it. n_bytes: of the whole tensor, the one that is not cut into shards.

    Collective("all_gather", n_bytes=4096, n_ranks=64, dtype=torch.bfloat16)
    """

    name: str
    n_bytes: int
    n_ranks: int
    dtype: torch.dtype

    @property
    def sent_bytes(self) -> float:
        """What a rank sends in a ring."""
        return _TIMES_SENT[self.name] * self.n_bytes * (self.n_ranks - 1) / self.n_ranks


def collectives_of_fully_shard(
    build: Callable[[], nn.Module],
    units: Callable[[nn.Module], Iterable[nn.Module]],
    loss: Callable[[nn.Module], Tensor],
    n_ranks: int,
    n_replicas: int = 1,
    reshard_after_forward: bool = True,
    param_dtype: torch.dtype | None = None,
    reduce_dtype: torch.dtype | None = None,
    n_steps: int = 1,
) -> list[Collective]:
    """The collectives of rank 0 in `n_steps` of forward and backward, in their order.

    build: the model, made on the meta device. units: of the model, what is gathered as one; the model's other
    parameters are one more. loss: model -> a number, through the model's own forward. n_replicas: of hybrid sharding,
    how many groups of ranks hold the same shards. Raises RuntimeError in a process that has a process group already.
    """
    if n_ranks % n_replicas:
        raise ValueError(f"{n_ranks} ranks are not {n_replicas} groups of one size")
    policy = MixedPrecisionPolicy(param_dtype=param_dtype, reduce_dtype=reduce_dtype)
    with fake_ranks(n_ranks):
        shape, names = ((n_ranks,), ("shard",))
        if n_replicas > 1:
            shape, names = (n_replicas, n_ranks // n_replicas), ("replicate", "shard")
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
        with torch.device("meta"):
            model = build()
        for unit in units(model):
            fully_shard(unit, mesh=mesh, reshard_after_forward=reshard_after_forward, mp_policy=policy)
        # The outermost unit is not freed after the forward pass, unless somebody asks for it.
        fully_shard(model, mesh=mesh, mp_policy=policy)
        model.to_empty(device="cpu")
        found = _Calls()
        for _ in range(n_steps):
            with found:
                loss(model).backward()
            model.zero_grad()
    return found.calls


class _Calls(TorchDispatchMode):
    """Writes down the collectives that are dispatched."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Collective] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        namespace, _, rest = str(func).partition(".")
        if namespace == "c10d" and (name := _CALLS.get(rest.partition(".")[0])):
            tensors = [one for many in args for one in (many if isinstance(many, list) else [many])]
            largest = max((one for one in tensors if isinstance(one, Tensor)), key=lambda one: one.nbytes)
            (group,) = (one for one in args if _is_group(one))
            n_ranks = dist.ProcessGroup.unbox(group).size()
            self.calls.append(Collective(name, largest.nbytes, n_ranks, largest.dtype))
        return func(*args, **(kwargs or {}))


def _is_group(value: object) -> bool:
    return isinstance(value, torch.ScriptObject) and value._type().name() == "ProcessGroup"
