"""The frames of a job that runs a notebook's steps. Their order is drawn in `grading.worker.protocol`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from grading.worker.protocol.steps import Step, step_from_tree, step_to_tree
from grading.worker.protocol.trees import (
    MAX_ERROR,
    clean,
    clean_or_none,
    figures_from_tree,
    held_from_tree,
    trouble_from_tree,
    trouble_to_tree,
)
from grading.worker.wire.typed import Frame
from labkit.spec import Case, Observation, Tree, Trouble
from labkit.tree import same

MAX_PRINTED = 64 * 1024
"""Characters of what a cell prints that a worker keeps; it adds a note of what it cut."""
MAX_NOTE = 100
MAX_VALUE = 100
"""Characters of the text of a test's last expression."""


@dataclass(frozen=True)
class StartJob(Frame):
    """Run these steps, each exercise in a fork or in the process itself: `StartJob((RunCode("a", "x = 1"),), True)`."""

    kind: ClassVar[str] = "job"
    steps: tuple[Step, ...]
    fork: bool

    def to_parts(self) -> dict[str, Tree]:
        return {"steps": list(map(step_to_tree, self.steps)), "fork": self.fork}

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        return cls(tuple(map(step_from_tree, parts["steps"])), parts["fork"])


@dataclass(frozen=True)
class Begins(Frame):
    """The worker is there and has run nothing of the student's yet: `Begins()`."""

    kind: ClassVar[str] = "begins"


@dataclass(frozen=True)
class Go(Frame):
    """The worker has been looked at and may run the first step: `Go()`."""

    kind: ClassVar[str] = "go"


@dataclass(frozen=True)
class At(Frame):
    """The worker has come to this step: `At("02-sum")`. Which one is next is known without it, and so not believed."""

    kind: ClassVar[str] = "at"
    cell_id: str = ""


@dataclass(frozen=True)
class CellEnded(Frame):
    """How a cell or a plain test ended: `CellEnded(False, "NameError: name 'y' is not defined", "3\\n", None)`.

    value: the text of a test's last expression.
    """

    kind: ClassVar[str] = "cell"
    ok: bool
    error: str | None
    printed: str
    value: str | None

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        error, value = clean_or_none(parts["error"], MAX_ERROR), clean_or_none(parts["value"], MAX_VALUE)
        return cls(parts["ok"] is True, error, clean(parts["printed"], MAX_PRINTED + MAX_NOTE), value)


@dataclass(frozen=True)
class Ready(Frame):
    """The exercise is ready to take its cases: `Ready()`."""

    kind: ClassVar[str] = "ready"


@dataclass(frozen=True)
class ThreadsAreRunning(Frame):
    """The cells left threads running, and a fork could hang: the job ends here. `ThreadsAreRunning()`."""

    kind: ClassVar[str] = "threads"


@dataclass(frozen=True)
class RunCase(Frame):
    """Drive the answer on a case: `RunCase({"n_rows": 4}, {"x": torch.ones(4)}, False)`.

    case: the fields of the exercise's own type of case. lend: hand the inputs over themselves, as memory, and do not
    look at them afterwards (`labkit.observe`). rank, world_size: of a rank, whose part of the inputs `tree` is. job:
    of a job on a store, its number.
    """

    kind: ClassVar[str] = "case"
    case: dict[str, Tree]
    tree: Tree
    lend: bool
    rank: int | None = None
    world_size: int | None = None
    job: int | None = None

    @property
    def as_memory(self) -> bool:
        return self.lend


@dataclass(frozen=True)
class Observed(Frame):
    """What came of a case: `Observed({"out": torch.ones(4)}, {"peak_bytes": 64.0}, None)`.

    got: what the driver returned. measured: figures of meters, all of them claims. back: the inputs afterwards, None
    where they were not changed. launch_log: of an exercise of kernels, what it launched. held: what figures consist of,
    in words: claims, which choose among hints.
    """

    kind: ClassVar[str] = "observed"
    got: Tree
    measured: Mapping[str, float]
    trouble: Trouble | None
    back: Tree = None
    launch_log: Tree = None
    held: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def to_parts(self) -> dict[str, Tree]:
        held = {name: list(texts) for name, texts in self.held.items()}
        trouble = trouble_to_tree(self.trouble)
        return {**super().to_parts(), "measured": dict(self.measured), "trouble": trouble, "held": held}

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        figures, trouble = figures_from_tree(parts["measured"]), trouble_from_tree(parts["trouble"])
        held = held_from_tree(parts.get("held", {}))
        return cls(parts["got"], figures, trouble, parts.get("back"), parts.get("launch_log"), held)

    @classmethod
    def of(cls, run: Observation, launch_log: Tree = None) -> Self:
        """What to send of a run. Inputs that are as they came need not go back: saying so is worth as much."""
        back = None if same(run.tree, run.back) else run.back
        return cls(run.got, run.measured, run.trouble, back, launch_log, run.held)

    def back_of(self, sent: Tree, lent: bool) -> Tree:
        """The inputs afterwards, for those that were sent: what was lent is not looked at, so nothing is said of it."""
        return sent if lent or self.back is None else self.back

    def as_observation(self, case: Case, sent: Tree, lent: bool) -> Observation:
        """The run that this is said to be."""
        back = self.back_of(sent, lent)
        return Observation(case, sent, self.got, back, self.measured, self.trouble, held=self.held)


@dataclass(frozen=True)
class Probe(Frame):
    """Try a meter on its probe of size n (`grading/worker/probes.py`): `Probe("ops", 37)`."""

    kind: ClassVar[str] = "probe"
    meter: str
    n: int


@dataclass(frozen=True)
class Probed(Frame):
    """What the meter counted: `Probed({"dispatches": 38.0, "flops": 74.0})`."""

    kind: ClassVar[str] = "probed"
    measured: Mapping[str, float]

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        return cls(figures_from_tree(parts["measured"]))


@dataclass(frozen=True)
class Done(Frame):
    """There are no more cases of this exercise: `Done()`."""

    kind: ClassVar[str] = "done"


@dataclass(frozen=True)
class ExerciseOver(Frame):
    """The exercise's fork has ended: `ExerciseOver("exit code 0")`, `ExerciseOver("SIGSEGV")`."""

    kind: ClassVar[str] = "exercise over"
    how: str

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        return cls(clean(parts["how"], 40))


@dataclass(frozen=True)
class JobOver(Frame):
    """All steps are done: `JobOver()`."""

    kind: ClassVar[str] = "end"
