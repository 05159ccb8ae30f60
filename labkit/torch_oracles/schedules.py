"""The orders in which PyTorch's pipeline schedules run forward and backward passes, rank by rank; no process is needed.

How long they take is not said: `labkit.pipeline.run_schedule` plays them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from labkit.pipeline import KINDS, Action
from labkit.torch_oracles.private import private

SCHEDULES = {
    "GPipe": 1,
    "1F1B": 1,
    "LoopedBFS": 2,
    "Interleaved1F1B": 2,
    "InterleavedZeroBubble": 2,
    "ZBVZeroBubble": 2,
    "DualPipeV": 2,
}
"""The schedules by PyTorch's names for them, and how many stages a rank has unless it is told otherwise."""


def schedule_ops(
    schedule: str, n_ranks: int, n_microbatches: int, n_stages_per_rank: int | None = None
) -> list[list[Action]]:
    """For each rank its passes in order. Raises ValueError for a schedule that there is not, or that cannot be so."""
    if schedule not in SCHEDULES:
        raise ValueError(f"there is no schedule {schedule!r}: take one of {', '.join(SCHEDULES)}")
    try:
        ranks = private("get_schedule_ops")(schedule, n_ranks, n_microbatches, n_stages_per_rank)
    except AssertionError as error:
        raise ValueError(str(error)) from error
    found = [_in_order(_passes(actions)) for actions in ranks]
    _check(found, n_microbatches)
    return found


def _passes(actions: Iterable[Any]) -> Iterator[Action]:
    for action in actions:
        if action is None:
            continue
        if action.sub_actions:
            # Two that are overlapped, the first named first.
            yield from _passes(action.sub_actions)
        elif action.computation_type.value in KINDS:
            yield Action(action.computation_type.value, action.stage_index, action.microbatch_index)


def _in_order(ops: Iterable[Action]) -> list[Action]:
    """The same, with the forward passes of a stage numbered from 0 on.

    PyTorch 2.13 numbers those of the last rank's in 1F1B from 1 on. Where it runs a schedule it goes by their order.
    """
    ops = list(ops)
    first = defaultdict(lambda: len(ops))
    for op in ops:
        if op.kind == "F":
            first[op.stage] = min(first[op.stage], op.microbatch)
    return [replace(op, microbatch=op.microbatch - first[op.stage]) if op.kind == "F" else op for op in ops]


def _check(ranks: list[list[Action]], n_microbatches: int) -> None:
    """Raise RuntimeError unless every stage runs every micro-batch forward once and then backward once."""
    wanted = list(range(n_microbatches))
    for ops in ranks:
        for stage in {op.stage for op in ops}:
            mine = {kind: [op.microbatch for op in ops if op.stage == stage and op.kind == kind] for kind in KINDS}
            halves = sorted(mine["I"]) == sorted(mine["W"])
            whole = sorted(mine["B"] + mine["I"])
            if sorted(mine["F"]) != wanted or whole != wanted or not halves:
                raise RuntimeError(f"PyTorch's schedule does not run every micro-batch once on stage {stage}: {mine}")
