"""What a run gets, what it may take, and what is written down of it: plain data, without any talk with a worker."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from grading.supervisor.result import CellResult
from grading.supervisor.witness import Reading
from labkit.spec import Case, Observation, Tree
from labkit.tree import leaves

UNMEASURED = "unmeasured"
"""The kind of trouble of a case that whose memory could not be measured."""


def bytes_in(tree: Tree) -> int:
    """Bytes of the tensors in a tree."""
    return sum(leaf.nbytes for _, leaf in leaves(tree) if isinstance(leaf, torch.Tensor))


@dataclass(frozen=True)
class CaseInputs:
    """A case with its inputs. memory_limit_bytes: what it may hold at once, where memory is bounded from outside."""

    case: Case
    tree: Tree
    memory_limit_bytes: float | None = None

    @property
    def bounds_memory(self) -> bool:
        return self.memory_limit_bytes is not None

    @property
    def inputs_bytes(self) -> int:
        return bytes_in(self.tree)


@dataclass(frozen=True)
class CaseSet:
    """The cases of an exercise in their order, and probes (meter, operations) to go with them.

    cpu_s: CPU time for all of them together, enforced from outside.
    """

    inputs: tuple[CaseInputs, ...]
    probes: tuple[tuple[str, int], ...] = ()
    cpu_s: float | None = None

    @property
    def bounds_memory(self) -> bool:
        return any(inputs.bounds_memory for inputs in self.inputs)

    @property
    def is_sealed(self) -> bool:
        """Whether the job may start nothing that could work unseen."""
        return self.bounds_memory or self.cpu_s is not None


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
    """What happened, by cell id and by exercise id; `readings`: figures measured from outside or probed."""

    cells: dict[str, CellResult] = field(default_factory=dict)
    exercises: dict[str, list[Observation]] = field(default_factory=dict)
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    tapes: dict[str, list[Tree]] = field(default_factory=dict)
    """What each observed case says of its kernel launches, for the exercises that have any."""
    cpu_s: float = 0.0
