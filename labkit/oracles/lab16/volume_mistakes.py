"""Lab 16: what the usual mistakes with volumes give, as conditions of hints. The right numbers do not stand here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from labkit.exercises.lab16.volume import Volume
from labkit.spec import CANNOT_TELL, CaseRun

Formula = Callable[[Volume], float]


def close(a: Any, b: float) -> bool:
    return isinstance(a, float) and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)


def is_wrong(run: CaseRun[Volume], key: str) -> bool:
    return not close(run.got[key], run.expected[key])


def as_if(key: str, *methods: str, wrong: Formula) -> Callable[[CaseRun[Volume]], Any]:
    """A hint's condition: for these methods a mistake gives this number. CANNOT_TELL of other methods, and where the
    mistake changes nothing."""

    def when(run: CaseRun[Volume]) -> Any:
        if run.case.method not in methods:
            return CANNOT_TELL if not is_wrong(run, key) else False
        value = wrong(run.case)
        return CANNOT_TELL if close(value, run.expected[key]) else close(run.got[key], value)

    return when


def either(*conditions: Callable[[CaseRun], Any]) -> Callable[[CaseRun], Any]:
    """One of them holds; CANNOT_TELL where none does and one cannot tell."""

    def when(run: CaseRun) -> Any:
        answers = [condition(run) for condition in conditions]
        if any(answer is True for answer in answers):
            return True
        return CANNOT_TELL if any(answer is CANNOT_TELL for answer in answers) else False

    return when


def weights(case: Volume) -> float:
    """S: the bytes of all weights in 16 bits, and of all gradients."""
    return 2.0 * case.n_params


def less_own(n: int) -> float:
    return (n - 1) / n


def n_passes(method: str) -> int:
    """How often a method passes all weights or gradients round in a step of one micro-batch."""
    return {"zero3": 3, "hybrid": 3}.get(method, 2)


def passed_often(case: Volume, often: float) -> float:
    return often * less_own(case.n_ranks) * weights(case)


def between(case: Volume) -> float:
    """What a rank sends to average its shard with the other nodes."""
    return 2 * less_own(case.n_nodes) * weights(case) / case.ranks_per_node


def in_and_between(case: Volume, passes: float, n_averaged: float = 1) -> float:
    """What a rank sends with hybrid sharding: passes within its node, and its shard averaged with other nodes."""
    return passes * less_own(case.ranks_per_node) * weights(case) + n_averaged * between(case)


def multiplied(factor: Callable[[Volume], float], *methods: str) -> Callable[[CaseRun[Volume]], Any]:
    """The bytes sent are the right ones times a factor, which is not 1, wherever they are not 0."""

    def when(run: CaseRun[Volume]) -> Any:
        right, value = run.expected["sent"], factor(run.case)
        if methods and run.case.method not in methods:
            return CANNOT_TELL
        if right == 0 or math.isclose(value, 1):
            return False if is_wrong(run, "sent") else CANNOT_TELL
        return close(run.got["sent"], right * value)

    return when


def own_part_sent(run: CaseRun[Volume]) -> Any:
    """Every pass costs S. One rank, which sends nothing, sends S in each pass then, and how many there are is open."""
    case, right = run.case, run.expected["sent"]
    if case.method == "hybrid":
        wrong = (right - between(case)) / less_own(case.ranks_per_node) + between(case)
        return close(run.got["sent"], wrong) if is_wrong(run, "sent") else CANNOT_TELL
    if case.n_ranks == 1:
        return CANNOT_TELL if (run.got["sent"] / weights(case)).is_integer() else False
    return close(run.got["sent"], right / less_own(case.n_ranks))


def n_of_states(case: Volume) -> int:
    """Over how many ranks the optimizer's states are cut."""
    return {"ddp": 1, "hybrid": case.ranks_per_node}.get(case.method, case.n_ranks)


FLAT = ("ddp", "zero1", "zero2", "zero3")
"""Methods in which all ranks are one ring."""


def mesh_as_if(*methods: str, wrong: Callable[[Volume], tuple[int, int]]) -> Callable[[CaseRun[Volume]], Any]:
    """A hint's condition: for these methods the mesh is this one. CANNOT_TELL of others, and where it is right so."""

    def when(run: CaseRun[Volume]) -> Any:
        right = run.expected["mesh"]
        if run.case.method not in methods:
            return CANNOT_TELL if run.got["mesh"] == right else False
        value = [float(one) for one in wrong(run.case)]
        return CANNOT_TELL if value == right else run.got["mesh"] == value

    return when


def mesh_is_turned_round(run: CaseRun[Volume]) -> Any:
    right = run.expected["mesh"]
    return CANNOT_TELL if right == right[::-1] else run.got["mesh"] == right[::-1]


def all_ranks_cross(run: CaseRun[Volume]) -> bool:
    """What crosses is ranks_per_node times as much as it should be."""
    return run.case.method in FLAT and close(run.got["crossed"], run.case.ranks_per_node * run.expected["crossed"])


def a_rank_s_share_crosses(run: CaseRun[Volume]) -> bool:
    return close(run.got["crossed"], run.expected["crossed"] / run.case.ranks_per_node)
