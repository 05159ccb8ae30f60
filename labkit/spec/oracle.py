"""The half that only the judge has: what is true of a run, how close is close, what may be used, and what is said.

It declares these; `labkit.check` judges by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from labkit.measures import MARKS, at_moment, find_measure
from labkit.spec.record import CaseRun, Observation, Tree

Outcome = Literal["passed", "partial", "unanswered", "failed", "limit", "suspected", "infrastructure"]


@dataclass(frozen=True)
class Tolerance:
    """|got - expected| <= atol + rtol * |expected| + of_largest * max |expected|, elementwise.

    of_largest: for sums whose terms cancel: another order, another processor or a GPU moves all of a tensor's elements
    by a part of its largest one, however small they are themselves. NaN equals NaN, whatever its payload.

        Tolerance(atol=1e-6, rtol=1e-5)
    """

    atol: float = 0.0
    rtol: float = 0.0
    check_dtype: bool = True
    of_largest: float = 0.0


EXACT = Tolerance()


CANNOT_TELL = object()
"""What `Hint.when` returns of a run that would look the same with and without the mistake."""


@dataclass(frozen=True)
class Hint:
    """A diagnosis of wrong values: the likely mistake in words, and the runs that bear it out.

        Hint(lambda run: torch.equal(run.got["out"], run.tree["x"] ** 2), "This is the square: the product is `*`.")

    when: run -> whether the mistake explains this wrong value, or CANNOT_TELL; it may raise, which counts as no, or
          return a tensor. One failing case that says no is enough for the hint not to be shown.
    """

    when: Callable[[CaseRun], Any]
    text: str


@dataclass(frozen=True)
class Rivals:
    """Hints on mistakes that only the values tell apart, such as factors in a sum: where two of them with different
    texts explain every failing case, nobody knows which it was, and neither is shown.

        Rivals((Hint(is_twice, "Counted twice: ..."), Hint(is_per_layer, "Counted in every layer: ...")))
    """

    hints: tuple[Hint, ...]


@dataclass(frozen=True)
class Budget:
    """`measured[name] <= limit`, or `>=` where `at_least` is set; the limit may depend on the run.

        Budget("launches", 3, "Count the targets, go over the rows, scale the gradient: three launches.")

    name: of a measure; ValueError where `labkit.measures` has none of that name. unit: the measure's own, unless the
    figure means something else here: `seconds` are rounds on the cluster `UNIT`. at: the moment that the figure is of,
    as the driver marks it with `stage.mark`, such as "between layers"; `held_bytes` needs one and no other measure has
    one.
    """

    name: str
    limit: float | Callable[[CaseRun], float]
    hint: str
    at_least: bool = False
    unit: str = ""
    at: str = ""

    def __post_init__(self) -> None:
        measure = find_measure(self.name)
        if (measure.meter == MARKS) != bool(self.at):
            has = "is of a moment: name it with at=" if measure.meter == MARKS else "is of the whole run and has no at="
            raise ValueError(f"the measure {self.name} {has}")
        object.__setattr__(self, "unit", self.unit or measure.unit)

    @property
    def key(self) -> str:
        """What its figure is called in `measured`: the measure's name, with the moment's where there is one."""
        return at_moment(self.name, self.at)


@dataclass(frozen=True)
class Oracle:
    """The half that only the judge has: what is true of a run.

        Oracle("12-softmax", expect=lambda run: {"out": run.tree["x"].softmax(-1)}, tolerance=Tolerance(rtol=1e-5))

    expect:     run -> the tree that the driver should have returned, from run.case and run.tree alone; None where
                properties say it all.
    judge:      properties of one run, run -> what is wrong, or None.
    judge_all:  properties of all runs together, [run] -> what is wrong, or None.
    tolerance:  one for all, or run -> one, or run -> a mapping from each top key of the tree to one.
    full_size:  budgets on what was launched and compiled at `Exercise.full_size`.
    diagnose:   from the specific hint to the general one; shown is the first that explains every failing case.
    errors:     the hint on an exception that the answer raises, by a part of its text; for those whose text and line
                leave the mistake open. "of cpu time" is in the text of an answer that takes too long. A deadlock has
                keys of its own, which say what every rank waits for: "deadlock: to receive".
    unusable:   the same of an exception that no line of the answer raises: what it returned, or made, cannot be used.
    fact:       run -> what is off about a wrong value that no hint explains, in the exercise's units, or None.
    strip:      run -> what the answer did, in a few lines of text that are shown as they are, or None.
    axis:       what hidden cases have that the public ones do not, as told to whom only those fail.
    call:       run -> how the answer was called, in the student's names and values ("scale(x, by=2)"); where it is
                None, a case is shown by its fields.
    places:     what a student calls a part of the result, by its path in the tree: {"gib": "number of GiB"} makes
                "wrong number of GiB" of a wrong value there. A * is any one part, and {0} in the words what stands
                there, a number counted from 1: {"norms.*": "norm of step {0}"}.
    show:       (run, index) -> the input behind the first wrong element, in words, or None.
    score:      [run] -> 0..1, asked only when nothing else is wrong; None means pass or fail.
    earned:     [run] -> (label, text) rows shown with a verdict that earns points: what the answer came to.
    record:     [run] -> plain data as JSON has it, kept with a verdict that earns points; nobody but the instructor's
                commands reads it.
    """

    id: str
    expect: Callable[[CaseRun], Tree] | None = None
    judge: tuple[Callable[[CaseRun], str | None], ...] = ()
    judge_all: tuple[Callable[[Sequence[CaseRun]], str | None], ...] = ()
    tolerance: Tolerance | Callable[[CaseRun], Tolerance | Mapping[str, Tolerance]] = EXACT
    budgets: tuple[Budget, ...] = ()
    full_size: tuple[Budget, ...] = ()
    diagnose: tuple[Hint | Rivals, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)
    fact: Callable[[CaseRun], str | None] | None = None
    strip: Callable[[CaseRun], str | None] | None = None
    axis: str = "sizes, dtypes and special values that the public cases do not have"
    call: Callable[[Observation], str] | None = None
    places: Mapping[str, str] = field(default_factory=dict)
    show: Callable[[CaseRun, tuple[int, ...] | None], str | None] | None = None
    score: Callable[[Sequence[CaseRun]], float] | None = None
    earned: Callable[[Sequence[CaseRun]], tuple[tuple[str, str], ...]] | None = None
    record: Callable[[Sequence[CaseRun]], Mapping[str, Any]] | None = None
