"""Lab 18: the idle shares and speed-ups that the usual mistakes come to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from labkit.exercises.lab18.naive_idle import Stages
from labkit.oracles.hints import Condition
from labkit.spec import CANNOT_TELL, CaseRun

CLOSE = 1e-6
Shares = Callable[[Stages], Sequence[float]]


def beside(case: Stages, stage: int) -> float:
    """The transfer times of a stage's links together: one message over each of them."""
    return sum(case.transfer_ms[max(stage - 1, 0) : stage + 1])


def computes(case: Stages, stage: int) -> float:
    return case.forward_ms[stage] + case.backward_ms[stage]


def alone(case: Stages) -> float:
    return sum(case.forward_ms) + sum(case.backward_ms)


def of_stages(idle: Callable[[Stages, int], float]) -> Shares:
    return lambda case: [idle(case, stage) for stage in range(len(case.forward_ms))]


def with_messages(n_way: int, n_talk: int) -> Shares:
    """The step has n_way messages over each link, and a stage is busy with n_talk of each of its links."""
    return of_stages(
        lambda case, stage: (
            1 - (computes(case, stage) + n_talk * beside(case, stage)) / (alone(case) + n_way * sum(case.transfer_ms))
        )
    )


def over_one_link(before: int) -> Shares:
    """A stage is busy with the messages of one link alone: of the one to the next stage, or with -1 of the other."""

    def busy(case: Stages, stage: int) -> float:
        link = stage + before
        return computes(case, stage) + 2 * (case.transfer_ms[link] if 0 <= link < len(case.transfer_ms) else 0)

    return of_stages(lambda case, stage: 1 - busy(case, stage) / (alone(case) + 2 * sum(case.transfer_ms)))


def rounded_to(digits: int) -> Callable[[float], float]:
    return lambda share: round(share, digits)


def forward_only(case: Stages, stage: int) -> float:
    step_ms = sum(case.forward_ms) + sum(case.transfer_ms)
    return 1 - (case.forward_ms[stage] + beside(case, stage)) / step_ms


def before_it_ends(case: Stages, stage: int) -> float:
    """Until its own last message, not until the end of the step."""
    above = range(stage)
    rest_ms = sum(case.backward_ms[one] for one in above) + sum(case.transfer_ms[: max(stage - 1, 0)])
    end_ms = alone(case) + 2 * sum(case.transfer_ms) - rest_ms
    return 1 - (computes(case, stage) + 2 * beside(case, stage)) / end_ms


def shares_are(*wrong: Shares, of_right: Callable[[float], float] | None = None) -> Condition:
    """The shares are those of a mistake; CANNOT_TELL where none changes anything. of_right: a function of each right
    share, in place of mistakes."""

    def when(run: CaseRun[Stages]) -> Any:
        right = run.expected["shares"]
        made = [[of_right(share) for share in right]] if of_right else [list(one(run.case)) for one in wrong]
        made = [one for one in made if not same(one, right)]
        if not made:
            return CANNOT_TELL if same(run.got["shares"], right) else False
        return any(same(run.got["shares"], one) for one in made)

    return when


def shares_are_times(run: CaseRun[Stages]) -> Any:
    """The shares are multiplied by the time of the step. CANNOT_TELL where nothing is idle."""
    right = run.expected["shares"]
    if not any(right):
        return CANNOT_TELL
    step_ms = alone(run.case) / run.expected["speedup"]
    return same(run.got["shares"], [share * step_ms for share in right])


def from_the_other_end(run: CaseRun[Stages]) -> Any:
    """Stage 0 is busy with the messages of the last link as well, because the index -1 means the last one."""
    right = run.expected["shares"]
    if not any(run.case.transfer_ms[-1:]):
        return CANNOT_TELL if same(run.got["shares"], right) else False
    step_ms = alone(run.case) / run.expected["speedup"]
    return same(run.got["shares"], [right[0] - 2 * run.case.transfer_ms[-1] / step_ms, *right[1:]])


def averages(run: CaseRun[Stages]) -> Any:
    """Every stage has the mean of the right shares. CANNOT_TELL where all are equal."""
    right = run.expected["shares"]
    if same(right, [right[0]] * len(right)):
        return CANNOT_TELL if same(run.got["shares"], right) else False
    return same(run.got["shares"], [sum(right) / len(right)] * len(right))


def busy_shares(run: CaseRun[Stages]) -> list[float]:
    return [1 - share for share in run.expected["shares"]]


def same(some: Any, others: Sequence[float]) -> bool:
    if not isinstance(some, list) or len(some) != len(others):
        return False
    return all(isinstance(a, float) and math.isclose(a, b, abs_tol=CLOSE) for a, b in zip(some, others))


def speedup_is(*wrong: Callable[[CaseRun[Stages]], float]) -> Condition:
    """The shares are right and the speed-up is that of a mistake; CANNOT_TELL where none changes anything."""

    def when(run: CaseRun[Stages]) -> Any:
        got, right = run.got["speedup"], run.expected["speedup"]
        if not same(run.got["shares"], run.expected["shares"]):
            return False
        made = [one for one in (wrong_one(run) for wrong_one in wrong) if not math.isclose(one, right, rel_tol=CLOSE)]
        if not made:
            return CANNOT_TELL if isinstance(got, float) and math.isclose(got, right, rel_tol=CLOSE) else False
        return any(math.isclose(got, one, rel_tol=CLOSE) for one in made)

    return when
