"""Lab 18: what the simulated devices wait in naive model parallelism, and what the usual mistakes look like.

The figures of the public cases are stored: they are those of a program that sends and receives on the simulator.
Students have this file, so neither the program nor the formulas stand here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from labkit.exercises.lab18.naive_idle import NAIVE_IDLE as EXERCISE
from labkit.exercises.lab18.naive_idle import Stages
from labkit.oracles.calls import as_call
from labkit.oracles.hints import Condition
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Tolerance

MEASURED = (
    ((3 / 4, 3 / 4, 3 / 4, 3 / 4), 1.0),
    ((29 / 44, 5 / 11, 35 / 44), 10 / 11),
    ((5 / 12, 5 / 12), 5 / 6),
    ((8 / 9, 59 / 72, 13 / 24, 29 / 36, 13 / 18), 7 / 9),
    ((0.0,), 1.0),
)
"""Idle shares by stage and the speed-up, a row for each public case."""
CLOSE = 1e-6

Shares = Callable[[Stages], Sequence[float]]


def expect(run: CaseRun[Stages]) -> dict[str, Any]:
    """What was measured in a public case."""
    shares, speedup = MEASURED[EXERCISE.public.index(run.case)]
    return {"shares": list(shares), "speedup": speedup}


def in_words(run: Observation) -> str:
    """The call that a case stands for."""
    times = [list(one) for one in (run.case.forward_ms, run.case.backward_ms, run.case.transfer_ms)]
    return f"{as_call('idle_shares', *times)}, and speedup of the same stages"


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


def fact(run: CaseRun[Stages]) -> str | None:
    """How far off the first wrong share is, as time."""
    got, right = run.got["shares"], run.expected["shares"]
    if not isinstance(got, list) or len(got) != len(right):
        return f"one share for each of the {len(right)} stages is asked for"
    step_ms = alone(run.case) / run.expected["speedup"]
    for stage, (a, b) in enumerate(zip(got, right)):
        if isinstance(a, float) and not math.isclose(a, b, abs_tol=CLOSE):
            return f"the step takes {step_ms:g} ms, of which stage {stage} is idle for {b * step_ms:g} ms"
    return None


NAIVE_IDLE = Oracle(
    id="18-naive-idle",
    call=in_words,
    places={"shares": "share of idle_shares(...)", "speedup": "speedup(...)"},
    expect=expect,
    tolerance=Tolerance(atol=1e-9),
    axis="other numbers of stages, and times of passes and transfers that all differ",
    fact=fact,
    unusable={"object is not iterable": "idle_shares returns a list with one share for each stage."},
    diagnose=(
        Hint(
            shares_are(with_messages(2, 0)),
            "This counts communication as idle: a stage that sends or receives is not waiting for its turn. Each of "
            "its links carries two messages in a step, and both ends are busy with each.",
        ),
        Hint(
            shares_are(of_stages(forward_only)),
            "This is the forward pass alone. The backward pass comes back through all stages, one after the other, "
            "with a message over each link.",
        ),
        Hint(
            shares_are(with_messages(1, 1)),
            "Each link carries two messages in a step: the activation on the way there, and its gradient on the way "
            "back.",
        ),
        Hint(
            shares_are(with_messages(0, 0)),
            "While a message travels, all other stages wait: the step takes as long as all passes *and* all transfers "
            "together.",
        ),
        Hint(
            shares_are(with_messages(2, 1)),
            "Both ends of a message are busy with it. Over each of its links a stage sends one message and receives "
            "one.",
        ),
        Hint(
            shares_are(over_one_link(0), over_one_link(-1)),
            "A stage in the middle has two links, one to the stage before it and one to the next, and it is busy with "
            "the messages of both.",
        ),
        Hint(
            shares_are(with_messages(4, 2)),
            "A message takes its transfer time once: sender and receiver are busy with it at the same time.",
        ),
        Hint(
            shares_are(lambda case: [1 - 1 / len(case.forward_ms)] * len(case.forward_ms)),
            "(p-1)/p is the share of equal stages without transfers. Here the stages differ: divide the time for "
            "which a stage is not busy by the time of the whole step.",
        ),
        Hint(
            shares_are(of_right=lambda share: 1 - share),
            "This is the share of the time in which a stage is busy. Its idle share is the rest.",
        ),
        Hint(
            shares_are_times,
            "This is idle time in ms. Divide it by the time of the step.",
        ),
        Hint(
            shares_are(of_right=lambda share: 100 * share),
            "Return shares between 0 and 1, not percent.",
        ),
        Hint(
            shares_are(of_right=lambda share: share / (1 - share)),
            "This is idle time divided by busy time. Divide by the time of the whole step.",
        ),
        Hint(
            shares_are(of_stages(before_it_ends)),
            "A stage waits until the step ends, so the time after its own last message is idle too: the next step "
            "begins for all stages at once.",
        ),
        Hint(
            speedup_is(lambda run: 1 / run.expected["speedup"]),
            "This is the time of the step divided by the time of one device: the speed-up is the other way round.",
        ),
        Hint(
            speedup_is(lambda run: 1.0),
            "One device with the whole model sends nothing: its time has no transfers, but the step's time does.",
        ),
        Hint(
            speedup_is(
                lambda run: float(len(run.case.forward_ms)),
                lambda run: len(run.case.forward_ms) * run.expected["speedup"],
            ),
            "The stages work one after the other, not at the same time: p devices do not make a step p times as fast.",
        ),
        Hint(
            speedup_is(
                lambda run: sum(run.case.forward_ms) / (sum(run.case.forward_ms) + sum(run.case.transfer_ms)),
                lambda run: alone(run.case) / (alone(run.case) + sum(run.case.transfer_ms)),
            ),
            "A step has a forward and a backward pass, and each link carries a message in both.",
        ),
    ),
)
