"""What an exercise is: frozen dataclasses that declare it, and those that record one run of it.

An exercise stands in two halves that share an id. `Exercise` says what is asked, given and run, and is present
wherever student code runs. `Oracle` says what is true, and is absent from the grader's sandbox.

There is no logic here: nothing is run, compared or judged in this module. A budget looks its measure up, no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from labkit.measures import MARKS, at_moment, find_measure

Tree = Any
"""Nested dicts and lists of tensors, numbers, strings, booleans and None: what may cross a process boundary."""

GiB = 2**30
MiB = 2**20
KiB = 2**10

STUB_MESSAGE = "Write your answer here."
"""The text of the NotImplementedError that every blank stub raises."""

EXTRA_SHARE = 0.1
"""What a lab's optional exercises may add, as a share of the points of its other exercises."""

Outcome = Literal["passed", "partial", "unanswered", "failed", "limit", "suspected", "infrastructure"]


@dataclass(frozen=True)
class Case:
    """One set-up of an exercise.

    Subclasses add fields of plain data (numbers, strings, booleans, tuples).

        Rows(n_rows=3, n_cols=1023)
    """


@dataclass(frozen=True)
class Answer:
    """One thing that the student writes.

    `object` is a function or class found by name, `value` a variable's plain value, `text` the source of a cell
    (of the exercise's own cell unless `cell` names another `grade_id`).

        Answer("words", kind="text", cell="99-words")
    """

    name: str
    kind: Literal["object", "value", "text"] = "object"
    cell: str | None = None


@dataclass(frozen=True)
class Run:
    """What the driver gets to run with; the limits hold for all cases of the exercise together.

    ranks: how many communicating copies of the driver run, one number or case -> number. When graded, each is a
    process of its own, and what another rank was given or made reaches it through `stage.comm` alone.
    cluster: case -> the `labkit.ranks.Cluster` that they are on; one node without it.
    store: whether the driver gets `stage.store`, files that outlive its process (`labkit.store`). `inputs` may then put
    {"files": {name: uint8 tensor}} there, and have the driver run in several jobs, one after the other, each but the
    last of which is killed: {"kills": [Kill(3).to_tree()]}. Neither reaches the answer.
    cells: whether the notebook's cells have run in its process. Without them every answer is a text, no Python of the
    student's has been anywhere near what the driver measures, and the figures are no claim.
    memory_bytes: what it may take beside what it holds when it begins, pages of files left out. Where that is less than
    the default, the grader holds it to that from outside on the hidden cases, with no further process.
    `needs` names grants beyond the plain profile: "loopback", "files", "subprocess", "compiler".

        Run(ranks=lambda case: case.n_ranks, wall_s=20.0, needs=("loopback", "files"))
    """

    ranks: int | Callable[[Any], int] = 1
    cluster: Callable[[Any], Any] | None = None
    store: bool = False
    cells: bool = True
    wall_s: float = 10.0
    cpu_s: float | None = None
    memory_bytes: int = GiB
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.store and self.ranks != 1:
            raise ValueError("an exercise has ranks or a store: its router does not know of stores yet")


@dataclass(frozen=True)
class Exercise:
    """The half that the sandbox has: what is asked, what goes in, and how the answer is run.

        Exercise(
            id="12-softmax", title="A softmax of rows", points=3, minutes=20, difficulty=2,
            answers=(Answer("softmax"),), public=(Rows(3, 1023), Rows(1, 1)),
            inputs=lambda case, gen: {"x": torch.randn(case.n_rows, case.n_cols, generator=gen)},
            drive=lambda ans, case, tree, stage: {"out": ans.softmax(tree["x"])},
            forbids=("torch.softmax",),
        )

    inputs: (case, generator) -> tree, every random number drawn from the generator. Where `run.ranks` is not 1 it may
            be {"ranks": [part of rank 0, ...], ...what all get}: a rank is given its own part as "mine" beside what
            all get, and no "ranks". Whatever no rank may know of another belongs there.
    drive:  (answers, case, tree, stage) -> tree. Builds whatever is not data (models, optimizers, schedules),
            calls the answer and returns what happened as a tree. Unless `run.ranks` is 1 it is called once a
            rank, and the judge sees {"ranks": [the tree of rank 0, ...]}; with `run.store` once a job, and the judge
            sees {"jobs": [the tree of job 0, or None where it was killed, ...]}.
    forbids: dotted names of calls that would make the exercise pointless; `torch.Tensor.half` stands for the
            method `.half()` on anything.
    optional: whether the lab is whole without it. Its points come on top of the lab's, as nbgrader's extra credit;
            the optional ones of a lab add up to at most EXTRA_SHARE of the others' points.
    full_size: of kernels: the size that the lab is about. An answer that passes everything else is called on tensors of
            this size that hold no data; its launches are recorded and compiled, but not run.
    """

    id: str
    title: str
    points: float
    minutes: int
    difficulty: Literal[1, 2, 3]
    answers: tuple[Answer, ...]
    public: tuple[Case, ...]
    inputs: Callable[[Any, Any], Tree]
    drive: Callable[[Any, Any, Tree, Any], Tree]
    run: Run = Run()
    meters: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    optional: bool = False
    full_size: Case | None = None

    def __post_init__(self) -> None:
        if not self.run.cells and any(answer.kind != "text" for answer in self.answers):
            raise ValueError(f"{self.id}: without the notebook's cells every answer has to be a text")


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


@dataclass(frozen=True)
class Trouble:
    """Why a run gave no value. `where` quotes the student's own line, never a library frame.

    kind: "unanswered", "raised", "wall", "cpu", "memory", "died", "forbidden", "missing", "type",
    "cell" (the cell that should have defined it failed).

        Trouble("raised", "ZeroDivisionError: division by zero", "line 3: return total / 0")
    """

    kind: str
    text: str
    where: str | None = None


@dataclass(frozen=True)
class Observation:
    """One run of one case: the inputs as sent, the tree that came back, the inputs afterwards, what was measured.

    held: by the name of a measure, the largest things that it consists of, in words; known only where it was measured.
    books: of an exercise with a store, the `labkit.store.Record` of its books.
    moments: of an exercise of several ranks, what was marked (`labkit.ranks.Moment`), in order.

        Observation(Rows(1, 2), {"x": torch.ones(1, 2)}, {"out": torch.ones(1, 2) / 2}, measured={"launches": 1.0})
    """

    case: Case
    tree: Tree
    got: Tree = None
    back: Tree = None
    measured: Mapping[str, float] = field(default_factory=dict)
    trouble: Trouble | None = None
    held: Mapping[str, Sequence[str]] = field(default_factory=dict)
    books: Any = None
    moments: Sequence[Any] = ()


SomeCase = TypeVar("SomeCase", bound=Case)
Worked = TypeVar("Worked")


@dataclass(frozen=True)
class CaseRun(Observation, Generic[SomeCase]):
    """An observation as an oracle reads it: with what was expected of it, and with what was worked out about it.

    expect: what `expected` comes from; the judge gives it, and `Hidden.expect` may stand in for the oracle's own.

        CaseRun(Rows(1, 2), {"x": torch.ones(1, 2)}, expect=lambda run: {"out": run.tree["x"].softmax(-1)})
    """

    expect: Callable[[CaseRun], Tree] | None = None
    _known: dict[tuple, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def expected(self) -> Tree:
        """The tree that should have come back, computed once. An exercise without `expect` has none (TypeError)."""
        return self.expect(self)

    def memo(self, work: Callable[..., Worked], *more: Any) -> Worked:
        """work(run, *more), computed once for this run, however many hints ask for it."""
        if (work, *more) not in self._known:
            self._known[work, *more] = work(self, *more)
        return self._known[work, *more]
