"""The frames between a rank and the router, while a case runs. A rank's channel says which rank it is, not a frame.

Tensors travel as `grading.worker.wire.tensor_bytes` packs them. The n-th send on a link, the n-th receive and the n-th
collective have the number n - 1, which both ends count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from grading.worker.wire.typed import Frame
from labkit.spec import Tree


@dataclass(frozen=True)
class Send(Frame):
    """Start sending, unanswered: `Send(1, {"shape": [2], "dtype": "float32", "bytes": torch.zeros(8, ...)})`."""

    kind: ClassVar[str] = "send"
    to: int
    tensor: Tree


@dataclass(frozen=True)
class Receive(Frame):
    """Start receiving, unanswered: `Receive(0)`."""

    kind: ClassVar[str] = "receive"
    source: int


@dataclass(frozen=True)
class Compute(Frame):
    """Let virtual time pass, unanswered: `Compute(0.25)`."""

    kind: ClassVar[str] = "compute"
    seconds: float


@dataclass(frozen=True)
class WaitSent(Frame):
    """Wait until a send is through, answered by None: `WaitSent(1, 0)`."""

    kind: ClassVar[str] = "wait sent"
    to: int
    number: int


@dataclass(frozen=True)
class WaitReceived(Frame):
    """Wait for a message, answered by its tensor: `WaitReceived(0, 0, {"shape": [2], "dtype": "float32"})`.

    like: the shape and dtype that it is received into.
    """

    kind: ClassVar[str] = "wait received"
    source: int
    number: int
    like: Tree


@dataclass(frozen=True)
class Barrier(Frame):
    """Wait for all ranks, or those of a group, answered by None: `Barrier()`, `Barrier([0, 2])`."""

    kind: ClassVar[str] = "barrier"
    group: list[int] | None = None


@dataclass(frozen=True)
class Mark(Frame):
    """Halt until all ranks have come to the moment of this name, answered by None: `Mark("between layers", 4096)`.

    held_bytes: what the rank says that it holds, or None.
    """

    kind: ClassVar[str] = "mark"
    label: str
    held_bytes: int | None = None


@dataclass(frozen=True)
class Enter(Frame):
    """Start a collective, answered by None or refused: `Enter("all_reduce", [tensor], "sum", None)`.

    inputs: packed tensors. op: where it reduces. src: who broadcasts, by its number in the group. outputs: the shapes
    and dtypes of what it is received into, for all_to_all. group: its ranks, ascending; None where all take part.
    """

    kind: ClassVar[str] = "enter"
    name: str
    inputs: list[Tree]
    op: str | None
    src: int | None
    outputs: list[Tree] | None = None
    group: list[int] | None = None


@dataclass(frozen=True)
class WaitCollective(Frame):
    """Wait for a collective's results, answered by a list of tensors: `WaitCollective(0)`."""

    kind: ClassVar[str] = "wait collective"
    number: int


@dataclass(frozen=True)
class Now(Frame):
    """Read the rank's virtual clock, answered by its seconds: `Now()`."""

    kind: ClassVar[str] = "now"


@dataclass(frozen=True)
class Answer(Frame):
    """What a call was for: `Answer(0.75)`, `Answer([tensor, tensor])`, `Answer()`."""

    kind: ClassVar[str] = "answer"
    value: Tree = None


@dataclass(frozen=True)
class Refused(Frame):
    """The call is a mistake of the rank's: `Refused("rank 1 receives float32 of shape (2,) into shape (3,)")`."""

    kind: ClassVar[str] = "refused"
    text: str


@dataclass(frozen=True)
class Over(Frame):
    """The case has ended for a reason that lies elsewhere: `Over()`."""

    kind: ClassVar[str] = "over"


CALLS = (Send, Receive, Compute, WaitSent, WaitReceived, Barrier, Mark, Enter, WaitCollective, Now)
ANSWERED = (WaitSent, WaitReceived, Barrier, Mark, Enter, WaitCollective, Now)
"""The calls after which a rank waits for an answer."""
