"""The frames between a job and the store that the supervisor keeps for it, while a case runs.

Bytes travel as tensors of uint8. Every call is answered before the job goes on; a job that is killed has no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from grading.worker.wire.typed import Frame
from labkit.spec import Tree


@dataclass(frozen=True)
class Write(Frame):
    """Make a file: `Write("state.tmp", torch.zeros(8, dtype=torch.uint8))`."""

    kind: ClassVar[str] = "write"
    name: str
    data: Tree


@dataclass(frozen=True)
class Rename(Frame):
    """Give a file another name: `Rename("state.tmp", "state")`."""

    kind: ClassVar[str] = "rename"
    name: str
    to: str


@dataclass(frozen=True)
class Read(Frame):
    """Read `size` bytes from `start` on, or all the rest: `Read("shard-3.tar", 512, None)`."""

    kind: ClassVar[str] = "read"
    name: str
    start: int
    size: int | None


@dataclass(frozen=True)
class ListFiles(Frame):
    """Ask for the names that begin like this: `ListFiles("shard-")`."""

    kind: ClassVar[str] = "list"
    prefix: str


@dataclass(frozen=True)
class Stored(Frame):
    """The call was carried out: `Stored(["state"])`; of a read with its bytes, of a list with the names."""

    kind: ClassVar[str] = "stored"
    value: Tree = None


@dataclass(frozen=True)
class NotThere(Frame):
    """There is no such file: `NotThere("there is no file 'state' in the store")`."""

    kind: ClassVar[str] = "not there"
    text: str


CALLS = (Write, Rename, Read, ListFiles)
