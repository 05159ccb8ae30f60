"""Be told of every launch of a kernel in a block, before its programs run: which kernel, with what, on which grid.

Launches in Triton's interpreter alone; on a GPU nothing is told. What is made of a launch is the listener's business.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import torch

from labkit import interpreter
from labkit.interpreter.unwatched import LISTENERS
from labkit.meters.launches_work import LaunchWork, follow


@dataclass(frozen=True)
class Pointer:
    """Of a tensor without data what the compiler wants to know: `Pointer(torch.float16, 8, 8192)`.

    offset_bytes: from an address that 16 divides; memory that PyTorch allocates begins at one. n_bytes: of the tensor.
    """

    dtype: torch.dtype
    offset_bytes: int = 0
    n_bytes: int = 0

    def data_ptr(self) -> int:
        return self.offset_bytes


@dataclass(frozen=True)
class KernelLaunch:
    """One launch as it was asked for.

    function: the plain function under the decorators. arguments: its parameters by name, defaults included. options:
    what else was given, `num_warps` and the like. grid: 1 to 3 numbers of programs. work: what its programs did, which
    fills up while they run.
    """

    kernel: Callable
    function: Callable
    arguments: Mapping[str, object]
    options: Mapping[str, object]
    grid: tuple[int, ...]
    work: LaunchWork = field(default_factory=LaunchWork, compare=False, repr=False)


@contextmanager
def listening(listener: Callable[[KernelLaunch], None]) -> Iterator[None]:
    """Call `listener` at each launch of the block. Blocks may be nested; the outermost is told first."""
    interpreter.enable()
    from triton.runtime import interpreter as triton_interpreter

    listeners = getattr(triton_interpreter, LISTENERS, None)
    if listeners is not None:
        listeners.append(listener)
        try:
            yield
        finally:
            listeners.remove(listener)
        return
    setattr(triton_interpreter, LISTENERS, [listener])
    interpreted, builder = triton_interpreter.InterpretedFunction, triton_interpreter.interpreter_builder
    run, set_grid_dim = interpreted.run, builder.set_grid_dim
    waiting: list[tuple[object, tuple, dict]] = []
    at_the_end = ExitStack()

    def run_and_report(self, *args, grid, warmup, **kwargs):
        waiting.append((self, args, kwargs))
        try:
            with at_the_end:
                return run(self, *args, grid=grid, warmup=warmup, **kwargs)
        finally:
            waiting.pop()

    def report(*sizes):
        # The one place where the grid is known, also where it was given as a function.
        launch = launch_of(*waiting[-1], sizes)
        at_the_end.callback(follow(triton_interpreter, launch.work, sys._getframe(1)))
        for one in list(getattr(triton_interpreter, LISTENERS)):
            one(launch)
        return set_grid_dim(*sizes)

    interpreted.run, builder.set_grid_dim = run_and_report, report
    try:
        yield
    finally:
        interpreted.run = run
        del builder.set_grid_dim
        delattr(triton_interpreter, LISTENERS)


def launch_of(kernel, args: tuple, kwargs: dict[str, object], grid: tuple[int, ...]) -> KernelLaunch:
    """The launch kernel[grid](*args, **kwargs) of Triton's interpreted function. Raises TypeError for missing ones."""
    signature = inspect.signature(kernel.fn)
    named = {name: value for name, value in kwargs.items() if name in signature.parameters}
    bound = signature.bind(*args, **named)
    bound.apply_defaults()
    options = {name: value for name, value in kwargs.items() if name not in signature.parameters}
    return KernelLaunch(kernel, kernel.fn, dict(bound.arguments), options, tuple(grid))
