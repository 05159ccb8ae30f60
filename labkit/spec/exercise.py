"""The half that the sandbox has: what is asked, what goes in, and how the answer is run.

Nothing is said here of what is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from labkit.spec.record import Case, Tree
from labkit.spec.sizes import GiB

STUB_MESSAGE = "Write your answer here."
"""The text of the NotImplementedError that every blank stub raises."""

EXTRA_SHARE = 0.1
"""What a lab's optional exercises may add, as a share of the points of its other exercises."""


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
