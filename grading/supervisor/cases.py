"""What a run is fed, what it may take, and what is written down of it: plain data, without any talk with a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from grading.supervisor.result import CellResult
from grading.supervisor.witness import Seen
from labkit.spec import Case, Observation, Tree
from labkit.tree import leaves

Step = Mapping[str, Tree]
"""What a worker does next: run code, serve an exercise, run a plain test; with the id of the cell."""

UNWATCHED = "unwatched"
"""The kind of trouble of a case that could not be watched."""


def bytes_in(tree: Tree) -> int:
    """Bytes of the tensors in a tree."""
    return sum(leaf.nbytes for _, leaf in leaves(tree) if isinstance(leaf, torch.Tensor))


@dataclass(frozen=True)
class Feed:
    """A case with its inputs. most_bytes: what it may hold at once, for a case whose memory is watched from outside."""

    case: Case
    tree: Tree
    most_bytes: float | None = None

    @property
    def watched(self) -> bool:
        return self.most_bytes is not None

    @property
    def inputs_bytes(self) -> int:
        return bytes_in(self.tree)


@dataclass(frozen=True)
class Fed:
    """The cases of an exercise in the order in which they are fed, and probes (meter, operations) to go with them.

    cpu_s: CPU time for all of them together, enforced from outside.
    """

    feeds: tuple[Feed, ...]
    probes: tuple[tuple[str, int], ...] = ()
    cpu_s: float | None = None

    @property
    def is_watched(self) -> bool:
        return any(feed.watched for feed in self.feeds)

    @property
    def is_sealed(self) -> bool:
        """Whether the job may start nothing that could work unseen."""
        return self.is_watched or self.cpu_s is not None


@dataclass(frozen=True)
class CellLimits:
    """Wall time for one cell, for all cells of one run through them, and for everything; characters printed in all."""

    one_s: float = 30.0
    all_s: float = 60.0
    submission_s: float = 300.0
    printed: int = 2**20


CELL_LIMITS = CellLimits()


@dataclass
class Transcript:
    """What happened, by cell id and by exercise id; `seen` are the figures that were watched or probed."""

    cells: dict[str, CellResult] = field(default_factory=dict)
    exercises: dict[str, list[Observation]] = field(default_factory=dict)
    seen: dict[str, list[Seen]] = field(default_factory=dict)
    tapes: dict[str, list[Tree]] = field(default_factory=dict)
    """What each observed case says of its kernel launches, for the exercises that have any."""
    cpu_s: float = 0.0
