"""Lab 13: what the backward pass of attention may move, compute and spill: its budgets, worked out from a case."""

from __future__ import annotations

import math

from labkit.exercises.lab13.flash_backward import Backward
from labkit.oracles.lab13.flash_attention import keys_read
from labkit.spec import CaseRun

STATISTIC_BYTES = 4
"""Of the logarithm of a sum, and of a row sum."""

SPILLED_BYTES = 32
"""Per thread: two gradients and three tiles of float32 come close to what a thread can have."""

N_PRODUCTS = 5
"""The scores, dp, dv, dk and dq: two kernels make the first two twice."""


def queries_read(case: Backward) -> int:
    """The queries that all blocks of keys of one head load: for each block those from the one that sees it first."""
    starts = range(0, case.seq, case.block_n)
    if not case.causal:
        return len(starts) * case.seq
    return sum(case.seq - start // case.block_m * case.block_m for start in starts)


def keys_read_back(case: Backward) -> int:
    """The keys that all blocks of queries of one head load."""
    return keys_read(case) if case.causal else math.ceil(case.seq / case.block_m) * case.seq


def load_bytes(run: CaseRun[Backward]) -> int:
    """Each program its own rows, q and dout for each block of keys, k and v for each of queries; out and dout once."""
    case = run.case
    per_row = case.n_bytes // case.seq
    statistics = 2 * STATISTIC_BYTES * case.n_heads * (case.seq + queries_read(case))
    return per_row * (6 * case.seq + 2 * queries_read(case) + 2 * keys_read_back(case)) + statistics


def least_loaded(run: CaseRun[Backward]) -> int:
    """The same without what lies on the other side of the diagonal; by atomics, k and v once and nothing for dq."""
    case = run.case
    per_row = case.n_bytes // case.seq
    queries, keys = len(range(0, case.seq, case.block_n)) * case.seq, len(range(0, case.seq, case.block_m)) * case.seq
    if case.causal:
        queries = sum(case.seq - start for start in range(0, case.seq, case.block_n))
        keys = sum(min(start + case.block_m, case.seq) for start in range(0, case.seq, case.block_m))
    if run.measured["atomic_bytes"]:
        return per_row * (3 * case.seq + 2 * queries)
    return per_row * (5 * case.seq + 2 * queries + 2 * keys)


def store_bytes(run: CaseRun[Backward]) -> int:
    """The gradients and two statistics of each query; by atomics also dq in float32 before they add to it."""
    case = run.case
    first = 4 * case.n_heads * case.seq * case.d_head if run.measured["atomic_bytes"] else 0
    return 3 * case.n_bytes + first + 2 * STATISTIC_BYTES * case.n_heads * case.seq


def atomic_bytes(run: CaseRun[Backward]) -> int:
    """dq in float32, for each block of keys."""
    return 4 * run.case.n_heads * run.case.d_head * queries_read(run.case)


def flops_on_matrix_units(run: CaseRun[Backward]) -> int:
    """Of five products, over the pairs that see each other; float32's in full precision are made elsewhere."""
    case = run.case
    n_pairs = case.seq * (case.seq + 1) // 2 if case.causal else case.seq**2
    return N_PRODUCTS * 2 * case.n_heads * n_pairs * case.d_head if case.dtype == "float16" else 0


def spilled_bytes(run: CaseRun[Backward]) -> int:
    """Per thread. Exact float32 products hold factors and sums in registers, and nobody trains with them."""
    return SPILLED_BYTES if run.case.dtype == "float16" else 32 * SPILLED_BYTES
