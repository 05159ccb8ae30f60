"""One run of an exercise's case: the case, what happened, and the same as an oracle reads it.

What is asked and what is true of it are declared in `exercise` and `oracle`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

Tree = Any
"""Nested dicts and lists of tensors, numbers, strings, booleans and None: what may cross a process boundary."""


@dataclass(frozen=True)
class Case:
    """One set-up of an exercise.

    Subclasses add fields of plain data (numbers, strings, booleans, tuples).

        Rows(n_rows=3, n_cols=1023)
    """


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
