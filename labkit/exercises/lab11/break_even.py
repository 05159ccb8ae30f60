"""Lab 11: when the time that compiling takes has been won back, over calls, restarts and changes of the code."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.spec import Answer, Case, Exercise, Tree

START, CHANGE = "start", "change"
"""A new process begins; the code or PyTorch has changed, so that nothing on disk fits any more."""


@dataclass(frozen=True)
class Costs:
    """Milliseconds: of a call that runs eagerly or compiled, and of a version that is compiled or found on disk.

    Costs(eager_ms=30, compiled_ms=20, cold_ms=7000, warm_ms=900)
    """

    eager_ms: int
    compiled_ms: int
    cold_ms: int
    warm_ms: int


@dataclass(frozen=True)
class Log(Case):
    """What happened: "start", "change", or the number of rows of a call's batch; and what each thing costs."""

    log: tuple[str | int, ...] = (START, 4, 4, 4)
    eager_ms: int = 30
    compiled_ms: int = 20
    cold_ms: int = 25
    warm_ms: int = 12

    def costs(self) -> Costs:
        return Costs(self.eager_ms, self.compiled_ms, self.cold_ms, self.warm_ms)


def drive_break_even(ans, case: Log, tree: dict, stage) -> Tree:
    totals = ans.compiled_totals(list(case.log), case.costs())
    return {"totals_ms": list(totals), "break_even": ans.break_even(list(case.log), case.costs())}


BREAK_EVEN = Exercise(
    id="11-break-even",
    title="When compiling has paid for itself",
    points=0.4,
    optional=True,
    minutes=25,
    difficulty=2,
    answers=(Answer("compiled_totals"), Answer("break_even")),
    public=(
        Log(),
        Log((START, 4, 4, 4, 4)),
        Log((START, 4, 4)),
        Log((START, 4, 4, 4, 7, 7, 9, 1, 12, 3)),
        Log((START, 5, 5, 5, 1, 5, 1, 1, 5, 1, 5, 1)),
        Log((START, 4, 4, START, 4, 4, 4, START, 4, 4, 4)),
        Log((START, 4, 4, 4, 4, START, 6, 6, 6, 4, 4, 4, 4, START, 6, 4, 8, 8, 8, 8), cold_ms=35, warm_ms=5),
        Log((START, 4, 4, 4, 4, CHANGE, 4, 4, START, 4, 4, 4, START, 4, 4), cold_ms=30, warm_ms=4),
        Log((START, 1, 6, 9, 5, 5, 1), cold_ms=15),
        Log((START, 8, 8, 8, 2, 2, 2), compiled_ms=31),
    ),
    inputs=lambda case, gen: {},
    drive=drive_break_even,
)
