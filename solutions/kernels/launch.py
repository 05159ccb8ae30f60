"""What several launchers need: the configurations that autotuning tries, the size of the GPU, checks of arguments.

A configuration says how many rows one program holds at once and how many warps share them; which is best is measured
on the card. Nothing is launched here.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
import triton
from torch import Tensor

WARP = 32
INTERPRETED_PROCESSORS = 4
"""In the interpreter there is no GPU to ask; few programs keep it quick, and more than one keeps their sum honest."""
MOST_COLUMNS = 65536
"""A row is held in the registers of one program: 32 warps with 64 numbers a thread."""

ELEMENTWISE = [
    triton.Config({"BLOCK": per_thread * WARP * warps}, num_warps=warps)
    for warps, per_thread in ((8, 8), (8, 16), (4, 8), (4, 16), (4, 32))
]
"""Blocks of a vector. Eight numbers of 16 bit are the 16 bytes that one load can have."""

ROW_BLOCKS = [
    triton.Config({"ROWS": rows}, num_warps=warps)
    for warps in (4, 8, 16, 32, 1)
    for rows in (1, 2, 4, 8, 16)
]
"""Several whole rows a program: short rows alone would leave it with too few loads under way."""

ROW_LOOPS = [
    triton.Config({"ROWS": rows, "PER_PROCESSOR": programs, "STAGES": stages}, num_warps=warps)
    for warps, programs in ((8, 2), (16, 1), (4, 4), (8, 4), (16, 2), (32, 1))
    for rows in (1, 4)
    for stages in (1, 3)
]
"""About as many programs as the processors can hold, each with a loop over blocks of rows; three STAGES fetch ahead."""


def fitting_rows(
    configs: Sequence[triton.Config], arguments: dict, **meta: object
) -> list[triton.Config]:
    """The configurations that give a thread 16 to 64 numbers of the block; where there are none, the nearest one."""
    return _fitting(configs, meta["BLOCK_N"], least=16, most=64)


def fitting_loops(
    configs: Sequence[triton.Config], arguments: dict, **meta: object
) -> list[triton.Config]:
    """As `fitting_rows`, for loops that hold two blocks, a weight and its gradient at once: 8 to 32 numbers a thread."""
    return _fitting(configs, meta["BLOCK_N"], least=8, most=32)


def _fitting(
    configs: Sequence[triton.Config], n_cols: int, least: int, most: int
) -> list[triton.Config]:
    def per_thread(config: triton.Config) -> float:
        return config.kwargs["ROWS"] * n_cols / (WARP * config.num_warps)

    def useful(config: triton.Config) -> bool:
        several = config.kwargs["ROWS"] > 1 and config.kwargs["ROWS"] * n_cols > 8192
        # One warp needs no shared memory for its sums; 32 warps are for rows that fewer cannot hold.
        few = config.num_warps == 1 and n_cols > 1024
        many = config.num_warps == 32 and n_cols < 16384
        return least <= per_thread(config) <= most and not (several or few or many)

    return list(filter(useful, configs)) or [
        min(configs, key=lambda one: abs(per_thread(one) - most))
    ]


def n_processors(x: Tensor) -> int:
    """The streaming multiprocessors of the GPU that x is on."""
    return _n_processors(x.device.index) if x.is_cuda else INTERPRETED_PROCESSORS


@functools.cache
def _n_processors(index: int) -> int:
    return torch.cuda.get_device_properties(index).multi_processor_count


def size_class(n: int) -> int:
    """What autotuning takes for the same size: the next power of two.

    Kernels take it as a number that they do not use. As a constant it would have them compiled anew for each size.
    """
    return triton.next_power_of_2(n)


def as_rows(x: Tensor) -> Tensor:
    """x as a matrix of its last dimension's rows; a view where x is contiguous. Raises ValueError for rows too long."""
    n_cols = x.shape[-1]
    if n_cols > MOST_COLUMNS:
        raise ValueError(
            f"rows of {n_cols:,} numbers do not fit into one program, which holds {MOST_COLUMNS:,}"
        )
    return x.reshape(-1, n_cols).contiguous()


def same_shape(op: str, **tensors: Tensor) -> None:
    """Raises ValueError where the tensors differ in shape, type or device, and names them."""
    if len({(one.shape, one.dtype, one.device) for one in tensors.values()}) > 1:
        told = ", ".join(
            f"{name} {tuple(x.shape)} {x.dtype} on {x.device}" for name, x in tensors.items()
        )
        raise ValueError(f"{op} takes tensors of one shape, type and device: {told}")
