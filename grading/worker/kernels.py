"""Loaded before any job of a lab on kernels: Triton, with the interpreter that runs its kernels on a processor.

One launch goes through it, and one compile, so that no fork pays for a first time. Nothing of it is a student's or is
judged.
"""

from __future__ import annotations

from contextlib import suppress

import torch
import triton
import triton.language as tl

from labkit import interpreter
from labkit.meters.compiled import CompileFailed, compile_report
from labkit.meters.traffic import track_traffic

interpreter.enable()


@triton.jit
def rehearsed(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + offsets, tl.exp(x - tl.max(x, axis=0)) / tl.sum(x, axis=0), mask=offsets < n)


_ARGUMENTS = (torch.ones(3), torch.empty(3), 3)
with track_traffic():
    rehearsed[(1,)](*_ARGUMENTS, BLOCK_SIZE=4)
# Where no program can be started yet, a job's first compile takes half a second longer.
with suppress(OSError, CompileFailed):
    compile_report(rehearsed, *_ARGUMENTS, BLOCK_SIZE=4)
