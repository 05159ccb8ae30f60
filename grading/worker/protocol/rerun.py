"""The frames of a job that runs kernels again, from their text alone and on inputs that the answer never had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from grading.worker.protocol.trees import MAX_ERROR, clean, figures_from_tree
from grading.worker.wire.typed import Frame
from labkit.spec import Tree


@dataclass(frozen=True)
class RerunKernels(Frame):
    """Load this module: `RerunKernels("from triton import jit...", (("add_kernel", "3f2a", "add_kernel"),), (90,))`.

    kernels: name, digest of the source, and name in the module, of each. archs: the GPUs to compile for.
    """

    kind: ClassVar[str] = "rerun"
    source: str
    kernels: tuple[tuple[str, str, str], ...]
    archs: tuple[int, ...]

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        return cls(parts["source"], tuple(map(tuple, parts["kernels"])), tuple(parts["archs"]))


@dataclass(frozen=True)
class Started(Frame):
    """The worker is there: `Started()`."""

    kind: ClassVar[str] = "started"


@dataclass(frozen=True)
class Loaded(Frame):
    """The module is loaded: `Loaded()`."""

    kind: ClassVar[str] = "loaded"


@dataclass(frozen=True)
class RerunCase(Frame):
    """Repeat a case's launches: `RerunCase({"entries": [...], "outputs": {...}, "left_out": 0}, {"x": tensor})`.

    launch_log: as the answer's process wrote it. tree: the inputs to repeat them on. full_size: the launches are
    compiled alone, and not repeated.
    """

    kind: ClassVar[str] = "case"
    launch_log: Tree
    tree: Tree
    full_size: bool = False


@dataclass(frozen=True)
class Repeated(Frame):
    """What the launches left: `Repeated({"out": tensor}, {"x": tensor}, {"load_bytes": 64.0}, ("sort",))`.

    outputs, inputs: tensors by path, afterwards. lost: operations of PyTorch's that no launch can stand for.
    """

    kind: ClassVar[str] = "repeated"
    outputs: Mapping[str, Tree]
    inputs: Mapping[str, Tree]
    measured: Mapping[str, float]
    lost: tuple[str, ...]

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        lost = tuple(clean(name, 40) for name in parts["lost"])
        return cls(parts["outputs"], parts["inputs"], figures_from_tree(parts["measured"]), lost)


@dataclass(frozen=True)
class Failed(Frame):
    """Loading or repeating went wrong: `Failed("no kernel of this name", "UnusableLog")`. by: the kind of error."""

    kind: ClassVar[str] = "failed"
    problem: str
    by: str

    @classmethod
    def from_parts(cls, parts: Mapping[str, Tree]) -> Self:
        return cls(clean(parts["problem"], MAX_ERROR), clean(parts["by"], 40))
