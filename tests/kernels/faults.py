"""Kernels with the classic faults, and the right ones that look like them."""

import torch
import triton
import triton.language as tl


@triton.jit
def racy_sum_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    """Every program adds to the same number, by a load and a store."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr, tl.load(out_ptr) + tl.sum(tl.load(x_ptr + offs), axis=0))


@triton.jit
def atomic_sum_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offs), axis=0))


@triton.jit
def locked_sum_kernel(x_ptr, out_ptr, lock_ptr, n_cols: tl.constexpr):
    """A row of sums under a lock, as in the backward pass of Triton's own layer-norm tutorial."""
    cols = tl.arange(0, n_cols)
    x = tl.load(x_ptr + tl.program_id(0) * n_cols + cols)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr + cols, tl.load(out_ptr + cols) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def last_program_sum_kernel(
    x_ptr, part_ptr, out_ptr, done_ptr, n_programs, BLOCK_SIZE: tl.constexpr, SEM: tl.constexpr
):
    """The program that finishes last adds up what all of them stored."""
    pid = tl.program_id(0)
    part = tl.sum(tl.load(x_ptr + pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)), axis=0)
    tl.store(part_ptr + pid, part)
    if tl.atomic_add(done_ptr, 1, sem=SEM) == n_programs - 1:
        offs = tl.arange(0, BLOCK_SIZE)
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + offs, mask=offs < n_programs, other=0.0), axis=0))


@triton.jit
def shift_kernel(x_ptr, shift, BLOCK_SIZE: tl.constexpr):
    """In place, each program reads its neighbour's block when shift is not 0."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs + shift)
    tl.store(x_ptr + offs, x)


@triton.jit
def gather_kernel(x_ptr, out_ptr, stride, first, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + first + offs * stride))


@triton.jit
def same_place_kernel(out_ptr, step, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs // 2, (offs * step).to(tl.float32))


def racy_sum(x: torch.Tensor, block_size: int = 64, kernel=racy_sum_kernel) -> torch.Tensor:
    out = torch.zeros(1)
    kernel[(x.numel() // block_size,)](x, out, BLOCK_SIZE=block_size)
    return out


def locked_sum(x: torch.Tensor) -> torch.Tensor:
    out, lock = torch.zeros(x.shape[1]), torch.zeros(1, dtype=torch.int32)
    locked_sum_kernel[(x.shape[0],)](x, out, lock, x.shape[1])
    return out


def last_program_sum(x: torch.Tensor, block_size: int = 64, sem: str = "acq_rel") -> torch.Tensor:
    n = x.numel() // block_size
    part, out, done = torch.zeros(n), torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    last_program_sum_kernel[(n,)](x, part, out, done, n, BLOCK_SIZE=block_size, SEM=sem)
    return out
