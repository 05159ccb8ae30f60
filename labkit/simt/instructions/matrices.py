"""Tensor cores: mma.sync.m16n8k16 and ldmatrix.

The layout of the fragments is that of the PTX manual ("Matrix fragments for mma.m16n8k16"). With g = lane / 4 and
t = lane % 4, a register pair of A holds rows g and g + 8, columns 2t, 2t + 1 and 2t + 8, 2t + 9; of B rows 2t, 2t + 1
and 2t + 8, 2t + 9 of column g; of C and D rows g and g + 8, columns 2t and 2t + 1.

The sum over k = 16 is taken in float64 and rounded once to float32. A tensor core adds in its own order and cuts off,
so that its bits differ from ours, except where all partial sums are exact, as with small integers. `ERROR` bounds by
how much, in units of S = |c| + sum |a_k b_k|:

- The products are exact, 11 bits times 11 bits. A tensor core adds some of them, at least four, to what it has so far
  (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021). All addends of a step are
  shifted to the exponent of the largest, which is at most that of S, and what falls below 24 bits is cut off. An addend
  loses less than 2^-23 S by that, and so does the step's result when it is made a float32.
- In at most 16 / 4 = 4 steps there are 16 products, c, and 3 results of steps before, 20 addends in all, and 4 results:
  less than 24 · 2^-23 S.
- Ours: 17 additions in float64 and one rounding, less than 2^-23 S.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt import exact, shared_access
from labkit.simt.instructions.warps import by_warp, flat
from labkit.simt.lanes import WARP
from labkit.simt.memory import SHARED_WINDOW
from labkit.simt.program import Instruction, Vector
from labkit.simt.values import Step, address_reader, reader, refuse, writer

F16, F32, F64, U16, U32 = (np.dtype(name) for name in ("f2", "f4", "f8", "u2", "u4"))
GROUP, PAIR = np.arange(WARP) // 4, np.arange(WARP) % 4
M, N, K = 16, 8, 16
ERROR = 25 * 2.0**-23
"""A tensor core's result and ours differ by less than this times |c| + sum |a_k b_k|, where they go to float32."""


def _halves(m: Any, words: list[np.ndarray], bf16: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each register, [rows, n_warps, 32] float64 of its low and of its high half."""
    found = []
    for word in words:
        spread = by_warp(m, word)
        parts = (spread & np.uint32(0xFFFF)).astype(U16), (spread >> np.uint32(16)).astype(U16)
        found.append(tuple((exact.bf16_to_f32(p) if bf16 else p.view(F16)).astype(F64) for p in parts))
    return found


def multiply_accumulate(one: Instruction, pc: int) -> Step:
    """mma.sync.aligned.m16n8k16.row.col.{f32,f16}.{f16,bf16}.{f16,bf16}.{f32,f16} d, a, b, c."""
    shape, *layout = one.modifiers[2:5] if one.modifiers[1] == "aligned" else one.modifiers[1:4]
    to, left, right, addend = one.modifiers[-4:]
    kinds = (to, left, right, addend)
    if shape != "m16n8k16" or layout != ["row", "col"] or left != right or left not in ("f16", "bf16"):
        raise refuse(one, "only m16n8k16 of f16 or bf16 is")
    if (to, addend) not in (("f32", "f32"), ("f16", "f16")) or (to == "f16" and left == "bf16"):
        raise refuse(one, f"not with {', '.join(kinds)}")
    vectors = [operand.items for operand in one.operands if isinstance(operand, Vector)]
    d, a, b, c = vectors
    put = [writer(item, one) for item in d]
    read_a, read_b = ([reader(item, U32, one) for item in items] for items in (a, b))
    read_c = [reader(item, F32 if addend == "f32" else U32, one) for item in c]
    line, bf16, halves = one.line, left == "bf16", addend == "f16"

    def run(m: Any) -> None:
        words_a = _halves(m, [read(m) for read in read_a], bf16)
        words_b = _halves(m, [read(m) for read in read_b], bf16)
        lead = np.broadcast_shapes(*(x[0].shape[:2] for x in (*words_a, *words_b)))
        left_matrix, right_matrix = np.zeros((*lead, M, K)), np.zeros((*lead, K, N))
        for i, (low, high) in enumerate(words_a):
            row, column = GROUP + 8 * (i % 2), 2 * PAIR + 8 * (i // 2)
            left_matrix[:, :, row, column], left_matrix[:, :, row, column + 1] = low, high
        for i, (low, high) in enumerate(words_b):
            row = 2 * PAIR + 8 * i
            right_matrix[:, :, row, GROUP], right_matrix[:, :, row + 1, GROUP] = low, high
        product = left_matrix @ right_matrix
        if halves:
            old = [half for pair in _halves(m, [read(m) for read in read_c], False) for half in pair]
        else:
            old = [by_warp(m, read(m)).astype(F64) for read in read_c]
        results = []
        for i, addition in enumerate(old):
            row, column = GROUP + 8 * (i // 2), 2 * PAIR + i % 2
            results.append((product[:, :, row, column] + addition).astype(F16 if halves else F32))
        if halves:
            bits = [result.view(U16).astype(U32) for result in results]
            results = [bits[0] | (bits[1] << np.uint32(16)), bits[2] | (bits[3] << np.uint32(16))]
        for write, result in zip(put, results, strict=True):
            write(m, flat(m, result))
        counts = m.counts[line]
        counts["mma_instructions"] += m.mask.n_warps
        counts["flops"] += m.mask.n_warps * 2 * M * N * K

    return run


def load_matrix(one: Instruction, pc: int) -> Step:
    """ldmatrix.sync.aligned.m8n8.x{1,2,4}[.trans].shared.b16: lanes 8i … 8i + 7 give the rows of matrix i."""
    count = next((int(name[1]) for name in one.modifiers if name in ("x1", "x2", "x4")), 0)
    if "m8n8" not in one.modifiers or not count or one.type != "b16":
        raise refuse(one)
    transposed, line = "trans" in one.modifiers, one.line
    targets = one.operands[0].items if isinstance(one.operands[0], Vector) else (one.operands[0],)
    put, address = [writer(item, one) for item in targets], address_reader(one.operands[1], one)
    who = object()
    row_of, column_of = (2 * PAIR, GROUP) if transposed else (GROUP, 2 * PAIR)

    def run(m: Any) -> None:
        offsets = address(m)
        if "shared" not in one.modifiers:
            offsets = offsets - SHARED_WINDOW
        outer = m.mask
        used = np.arange(m.lanes.n_threads)[None] % WARP < 8 * count
        m.mask = outer if count == 4 else outer.narrowed(used)
        offsets = np.where(used, offsets, 0) if count < 4 else offsets
        words = shared_access.load_shared(m, pc, line, offsets, U32, 4, who, offsets)
        m.mask = outer
        rows = np.stack([by_warp(m, word) for word in words], axis=-1)
        values = np.ascontiguousarray(rows).view(U16)
        for i, write in enumerate(put):
            matrix = values[:, :, 8 * i : 8 * i + 8]
            low = matrix[:, :, row_of, column_of]
            high = matrix[:, :, row_of + transposed, column_of + (not transposed)]
            write(m, flat(m, low.astype(U32) | (high.astype(U32) << np.uint32(16))))

    return run


TABLE = {"mma": multiply_accumulate, "ldmatrix": load_matrix}
