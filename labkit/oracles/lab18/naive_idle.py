"""Lab 18: the oracle of naive model parallelism: what the simulated devices wait.

The figures of the public cases are stored: they are those of a program that sends and receives on the simulator.
Students have this file, so neither the program nor the formulas stand here.
"""

from __future__ import annotations

import math
from typing import Any

from labkit.exercises.lab18.naive_idle import NAIVE_IDLE as EXERCISE
from labkit.exercises.lab18.naive_idle import Stages
from labkit.oracles.calls import as_call
from labkit.oracles.hints import any_of
from labkit.oracles.lab18.idle_mistakes import (
    CLOSE,
    alone,
    averages,
    before_it_ends,
    busy_shares,
    forward_only,
    from_the_other_end,
    of_stages,
    over_one_link,
    rounded_to,
    shares_are,
    shares_are_times,
    speedup_is,
    with_messages,
)
from labkit.spec import CaseRun, Hint, Observation, Oracle, Tolerance

MEASURED = (
    ((3 / 4, 3 / 4, 3 / 4, 3 / 4), 1.0),
    ((29 / 44, 5 / 11, 35 / 44), 10 / 11),
    ((5 / 12, 5 / 12), 5 / 6),
    ((8 / 9, 59 / 72, 13 / 24, 29 / 36, 13 / 18), 7 / 9),
    ((0.0,), 1.0),
)
"""Idle shares by stage and the speed-up, a row for each public case."""


def expect(run: CaseRun[Stages]) -> dict[str, Any]:
    """What was measured in a public case."""
    shares, speedup = MEASURED[EXERCISE.public.index(run.case)]
    return {"shares": list(shares), "speedup": speedup}


def in_words(run: Observation) -> str:
    """The call that a case stands for."""
    times = [list(one) for one in (run.case.forward_ms, run.case.backward_ms, run.case.transfer_ms)]
    return f"{as_call('idle_shares', *times)}, and speedup of the same stages"


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
    errors={
        "index out of range": "If this came from transfer_ms[...]: it has one entry fewer than there are stages, and "
        "none for a single stage. The first stage has no link before it, and the last one none after it."
    },
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
            shares_are(with_messages(1, 1), with_messages(1, 2)),
            "Each link carries two messages in a step: the activation on the way there, and its gradient on the way "
            "back.",
        ),
        Hint(
            shares_are(with_messages(0, 0), with_messages(0, 1), with_messages(0, 2)),
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
            from_the_other_end,
            "For stage 0, transfer_ms[i - 1] is transfer_ms[-1], which is the last link: Python counts negative "
            "indices from the end. The first stage has no link before it.",
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
            any_of(*(shares_are(of_right=rounded_to(digits)) for digits in (2, 3, 4))),
            "These shares are rounded. Return them as they are.",
        ),
        Hint(
            averages,
            "Every stage has the same share here, the mean over all of them. But stages compute for different times, "
            "and a stage in the middle talks over two links: divide the idle time of each stage by the step.",
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
                lambda run: alone(run.case) / (max(run.case.forward_ms) + max(run.case.backward_ms)),
                lambda run: (
                    alone(run.case)
                    / (max(run.case.forward_ms) + max(run.case.backward_ms) + 2 * sum(run.case.transfer_ms))
                ),
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
        Hint(
            speedup_is(lambda run: sum(busy_shares(run))),
            "The shares in which stages are busy were added up, and stages are also busy with messages. One device "
            "sends none: divide the time of all passes by that of the step.",
        ),
        Hint(
            speedup_is(lambda run: sum(busy_shares(run)) / len(run.case.forward_ms)),
            "This is the mean share in which a device is busy, and no speed-up: divide the time of all passes by that "
            "of the step.",
        ),
    ),
)
