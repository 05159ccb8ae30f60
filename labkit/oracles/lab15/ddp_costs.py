"""Lab 15: the calls, bytes and seconds of training that sends its gradients in buckets, for the budgets of `ddp`."""

from __future__ import annotations

import itertools
import math

from labkit.exercises.lab15.ddp import BLOCK_S, Job, Net, cluster_of
from labkit.spec import CaseRun

ROOM = 1.5
"""Buckets may be cut otherwise than in the schedule below: what stands out of the backward pass may last so much."""


def bucket_bytes(case: Job) -> list[int]:
    """The buckets of a network whose parameters fill one bucket after another, from the last to the first."""
    sizes, total = [], 0
    for parameter in reversed(list(Net(case, 0).parameters())):
        total += parameter.nbytes
        if total >= case.cap_bytes:
            sizes.append(total)
            total = 0
    return sizes + [total] * bool(total)


def reduce_s(case: Job, n_bytes: int) -> float:
    """A ring: 2(n-1) steps, in each of which an n-th of the bytes goes over every wire."""
    wire = cluster_of(case).within
    return 2 * (case.n_ranks - 1) * wire.time_s(n_bytes / case.n_ranks)


def after_backward_s(case: Job) -> float:
    """How long the last bucket ends after the backward pass, if every bucket leaves when its last block is done."""
    until_s = ready = 0.0
    backward_s = case.backward_s
    layers_bytes = case.block_bytes * (case.n_blocks + 2 * case.odd_ranks_swap + case.n_crossed)
    for n_bytes, total in zip(bucket_bytes(case), itertools.accumulate(bucket_bytes(case))):
        # The embedding's gradient comes last of all.
        ready = min(math.ceil(total / case.block_bytes) * BLOCK_S, backward_s) if total <= layers_bytes else backward_s
        until_s = max(until_s, ready) + reduce_s(case, n_bytes)
    return until_s - backward_s


def start_bytes(case: Job) -> list[int]:
    """What has to be broadcast. The shared weight has two names, and may go twice."""
    net = Net(case, 0)
    named = (*net.named_parameters(remove_duplicate=False), *net.named_buffers())
    return [tensor.nbytes for _, tensor in named]


def start_s(case: Job) -> float:
    """A broadcast for each, one after the other."""
    hops, wire = math.ceil(math.log2(case.n_ranks)), cluster_of(case).within
    return sum(hops * wire.time_s(n_bytes) for n_bytes in start_bytes(case))


def most_seconds(run: CaseRun[Job]) -> float:
    """Where a block is missing on some ranks, its bucket and those behind it may wait for the end."""
    case = run.case
    step_s = case.backward_s + ROOM * after_backward_s(case)
    if case.odd_ranks_skip is not None:
        step_s += sum(reduce_s(case, n_bytes) for n_bytes in bucket_bytes(case))
    return (start_s(case) + case.n_steps * step_s) * (1 + 1e-9)


def least_seconds(case: Job) -> float:
    """Every weight leaves rank 0 once; every step has a backward pass, and a last bucket behind it."""
    if case.n_ranks == 1:
        return case.n_steps * case.backward_s
    wire = cluster_of(case).within
    n_bytes = sum(tensor.nbytes for tensor in (*Net(case, 0).parameters(), *Net(case, 0).buffers()))
    backward_s = case.backward_s - BLOCK_S * (case.odd_ranks_skip is not None)
    return n_bytes / wire.bytes_per_s + case.n_steps * (backward_s + reduce_s(case, 0))


def most_calls(run: CaseRun[Job]) -> int:
    """One broadcast for every tensor at the start, then a call for every full bucket and one for the rest."""
    return len(start_bytes(run.case)) + run.case.n_steps * calls_a_step(run.case)


def calls_a_step(case: Job) -> int:
    return max(math.ceil(sum(bucket_bytes(case)) / case.cap_bytes), 1)


def most_bytes(run: CaseRun[Job]) -> float:
    """The root of a tree sends every tensor to ⌈log₂ n⌉ others; a ring's chunks are rounded up to whole numbers."""
    case = run.case
    n = case.n_ranks
    at_start = math.ceil(math.log2(n)) * sum(start_bytes(case))
    chunks = 2 * (n - 1) * (sum(bucket_bytes(case)) / n + 4 * calls_a_step(case))
    return at_start + case.n_steps * chunks + 4


def twice(case: Job) -> list[int]:
    """The gradients' bytes, that of the shared weight under both of its names."""
    return [parameter.nbytes for _, parameter in Net(case, 0).named_parameters(remove_duplicate=False)]
