"""Lab 11: the kernels that a function launches without a compiler, and the bytes that each of them moves."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.meters.compile import Kernel
from labkit.simdevice import SimDevice


def eager_kernels(function: Callable[..., object], *inputs: torch.Tensor) -> list[Kernel]:
    """One for each operation, in order: read are its tensor arguments, written is its result."""
    with SimDevice() as sim, torch.no_grad():
        on_device = [tensor.to(sim.device) for tensor in inputs]
        n_before = len(sim.commands)
        function(*on_device)
        launched = [command for command in sim.commands[n_before:] if command.kind == "kernel"]
    return [Kernel(one.name, (one.name,), one.nbytes, 0, generated=False) for one in launched]


def loop_of(source: str) -> str:
    """The first C++ loop of generated code, without what stands around it; the whole source where there is none."""
    start, end = source.find('extern "C"'), source.find("''')", source.find('extern "C"'))
    return source[start:end].strip() if 0 <= start < end else source
