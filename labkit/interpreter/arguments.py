"""What a launch is given: tensors that hold data and are of a type that Triton has, numbers, and a grid of integers.

What a kernel does with them is not looked at here.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import torch

MAX_GRID = (2**31 - 1, 65535, 65535)
"""Programs along each axis: CUDA's limits, so that a grid that works here works there."""


def check_arguments(
    kernel: str, arguments: Mapping[str, object], parameters: Sequence[str], constexprs: Iterable[str]
) -> None:
    """Refuse what no kernel can be given. constexprs: names of parameters that take any value of Python's.

    Raises ValueError for a tensor without data, TypeError for everything else, naming the argument.
    """
    for name, value in arguments.items():
        what = f"argument {name} of kernel {kernel}"
        if name not in parameters:
            if name not in _options():
                raise TypeError(
                    f"kernel {kernel} has no parameter {name}, nor is it an option of a launch such as num_warps; its "
                    f"parameters are {', '.join(parameters)}"
                )
        elif name in constexprs:
            if isinstance(value, torch.Tensor):
                raise TypeError(f"{what} is declared tl.constexpr, and was given a tensor: give it a number")
        elif isinstance(value, torch.Tensor):
            _check_tensor(what, value)
        else:
            _check_value(what, value)


def checked_grid(kernel: str, grid: object) -> Callable[[dict], tuple[int, ...]]:
    """The grid as a function of the arguments that says, by ValueError, what is wrong with what it was given as."""

    def checked(args: dict) -> tuple[int, ...]:
        try:
            value = grid(args) if callable(grid) else grid
        except KeyError as error:
            raise ValueError(
                f"the grid of kernel {kernel} asks for meta[{error}], and the kernel's parameters are {', '.join(args)}"
            ) from None
        if not isinstance(value, tuple | list) or not 1 <= len(value) <= 3:
            raise ValueError(f"the grid of kernel {kernel} must be a tuple of 1 to 3 integers, not {value!r}")
        try:
            sizes = tuple(operator.index(size) for size in value)
        except TypeError:
            raise ValueError(
                f"the grid of kernel {kernel} must be of integers, not {value!r}; triton.cdiv(n, BLOCK_SIZE) rounds up"
            ) from None
        if any(not 0 <= size <= most for size, most in zip(sizes, MAX_GRID)):
            raise ValueError(f"the grid of kernel {kernel} is {sizes}; each axis has 0 to {MAX_GRID[: len(sizes)]}")
        return sizes

    return checked


@functools.cache
def _options() -> frozenset[str]:
    """What a launch may be told besides the kernel's parameters; on a CPU it changes nothing."""
    from triton.backends.amd.compiler import HIPOptions
    from triton.backends.nvidia.compiler import CUDAOptions

    return frozenset(field.name for options in (CUDAOptions, HIPOptions) for field in dataclasses.fields(options))


def _check_tensor(what: str, tensor: torch.Tensor) -> None:
    from torch._subclasses import FakeTensor
    from triton.runtime.jit import mangle_type

    if isinstance(tensor, FakeTensor) or tensor.device.type not in ("cpu", "cuda"):
        where = "a fake tensor" if isinstance(tensor, FakeTensor) else f"on device {tensor.device}"
        raise ValueError(f"{what} is {where}, which holds no data to load: give it a tensor on the CPU")
    if tensor.layout != torch.strided:
        raise TypeError(f"{what} is a tensor of layout {tensor.layout}, which has no address: use x.to_dense()")
    try:
        mangle_type(tensor)
    except KeyError:
        raise TypeError(f"{what} is a tensor of {tensor.dtype}, a type that Triton does not have") from None


def _check_value(what: str, value: object) -> None:
    kind = type(value).__name__
    if isinstance(value, np.ndarray | list):
        raise TypeError(f"{what} is a {kind}: a kernel is given tensors and numbers, so use torch.as_tensor(...)")
    if isinstance(value, np.generic) and not isinstance(value, int | float):
        raise TypeError(f"{what} is a {kind} of numpy's, which a GPU would not take: use {what.split()[1]}.item()")
    if isinstance(value, str | bytes | dict | set | torch.dtype):
        raise TypeError(
            f"{what} is a {kind}: a kernel is given tensors and numbers; any other choice is a parameter that is "
            "declared tl.constexpr"
        )
