"""Lab 11: bytes that a function moves and keeps, without a compiler and with one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from labkit.meters.compile import Kernel
from labkit.meters.compile.torch_private import cut_by_aot, storages_of
from labkit.simdevice import SimDevice


def eager_kernels(function: Callable[..., object], *inputs: torch.Tensor) -> list[Kernel]:
    """One for each operation, in order: read are its tensor arguments, written is its result.

    What is compiled inside the function runs as it is written. Raises TypeError where it leaves for NumPy, as on a GPU.
    """
    with SimDevice() as sim, torch.no_grad(), torch.compiler.set_stance("force_eager"):
        on_device = [tensor.to(sim.device) for tensor in inputs]
        n_before = len(sim.commands)
        function(*on_device)
        launched = [command for command in sim.commands[n_before:] if command.kind == "kernel"]
    return [Kernel(one.name, (one.name,), one.nbytes, 0, generated=False) for one in launched]


def loop_of(source: str) -> str:
    """The first C++ loop of generated code, without what stands around it; the whole source where there is none."""
    start, end = source.find('extern "C"'), source.find("''')", source.find('extern "C"'))
    return source[start:end].strip() if 0 <= start < end else source


@dataclass(frozen=True)
class Cut:
    """A forward graph and its backward graph. n_outputs: how many of the forward graph's results are the model's."""

    forward: torch.fx.GraphModule
    backward: torch.fx.GraphModule
    n_outputs: int


def cuts_of(function: Callable[..., torch.Tensor], *inputs: torch.Tensor, budget: float = 1.0) -> list[Cut]:
    """What inductor's partitioner cuts each captured graph into, under this activation budget. Nothing is generated."""
    return [Cut(*cut) for cut in cut_by_aot(function, inputs, budget)]


def eager_kept_bytes(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> int:
    """What the eager function keeps for its backward pass, each storage once, without those of its inputs."""
    given = {tensor.untyped_storage().data_ptr() for tensor in inputs}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        function(*inputs)
    return sum(storage.nbytes() for place, storage in kept.items() if place not in given)


__all__ = ["Cut", "cuts_of", "eager_kept_bytes", "eager_kernels", "loop_of", "storages_of"]
