"""What a block asked of `torch.compile`, and what came of it, as plain data.

Nothing is measured here; `track.py` fills it in. Bytes of kernels are what a kernel has to read and write at least, if
each element of a buffer is moved once; caches and the code that would be compiled have no part in it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from labkit.units import in_bytes

CallState = Literal["compiling", "compiled", "eager"]
"""A call in which a graph was compiled, one that only ran graphs compiled before, one in which no graph ran."""


@dataclass(frozen=True)
class Break:
    """Why a graph ended early, or, where `frame_lost`, why a function was not compiled at all.

    where: the student's line, empty where there is none. call: the number of the call, from 0.

        Break("Data-dependent branching", "line 3: if x.sum() > 0:", call=0)
    """

    reason: str
    where: str
    call: int
    frame_lost: bool = False


@dataclass(frozen=True)
class Recompile:
    """A call for which no compiled version would do. guard: the first that failed, as PyTorch writes it.

    compiled: whether a new version was compiled; if not, the limit on versions was reached and the call ran eagerly.

        Recompile("step", "self.counter == 1", call=1, compiled=True)
    """

    function: str
    guard: str
    call: int
    compiled: bool


@dataclass(frozen=True)
class Kernel:
    """One kernel of the generated code: a fused loop, or a call into a library, for which nothing is generated.

    operations: the operations that it computes, by name and in order; a library's kernel has one.

        Kernel("op0_op1", ("mul", "add"), read_bytes=8192, written_bytes=4096, generated=True)
    """

    name: str
    operations: tuple[str, ...]
    read_bytes: int
    written_bytes: int
    generated: bool

    @property
    def total_bytes(self) -> int:
        return self.read_bytes + self.written_bytes


@dataclass(frozen=True)
class Code:
    """What inductor made of one graph, forward or backward: its kernels, and, if asked for, the source of its code.

    Code(backward=False, kernels=(Kernel("op0", ("mul", "add"), 8192, 4096, generated=True),))
    """

    backward: bool
    kernels: tuple[Kernel, ...]
    source: str = field(repr=False, default="")


@dataclass(frozen=True)
class Saved:
    """What a forward graph keeps for its backward graph beyond its own inputs, each storage counted once.

    before_bytes: if all were kept that the backward pass reads; after_bytes: what was decided to keep, the rest being
    recomputed.

        Saved(before_bytes=98304, after_bytes=32768)
    """

    before_bytes: int
    after_bytes: int


@dataclass(frozen=True)
class Graph:
    """One graph as a backend got it. operations: the names of what it calls, in order, without inputs and outputs.

    runs: how often it ran. call: the number of the call that compiled it.

        Graph(("mul", "add"), n_inputs=2, call=0, runs=3)
    """

    operations: tuple[str, ...]
    n_inputs: int
    call: int
    runs: int


@dataclass(frozen=True)
class CompileProfile:
    """All that `track_compile` saw. frames: functions, or rests of functions behind a break, that were compiled.

    CompileProfile(graphs=(Graph(("mul",), n_inputs=1, call=0, runs=2),), frames=1, calls=("compiling", "compiled"))
    """

    graphs: tuple[Graph, ...] = ()
    breaks: tuple[Break, ...] = ()
    frames: int = 0
    recompiles: tuple[Recompile, ...] = ()
    calls: tuple[CallState, ...] = ()
    codes: tuple[Code, ...] = ()
    saved: tuple[Saved, ...] = ()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Those of all graphs, forward before backward."""
        return tuple(kernel for code in self.codes for kernel in code.kernels)

    @property
    def kernel_bytes(self) -> int:
        return sum(kernel.total_bytes for kernel in self.kernels)

    @property
    def eager_calls(self) -> int:
        return self.calls.count("eager")

    @property
    def operations(self) -> int:
        """Operations of all graphs together, each graph counted once."""
        return sum(len(graph.operations) for graph in self.graphs)

    def __str__(self) -> str:
        states = Counter(self.calls)
        lines = [
            f"{_count(len(self.calls), 'call')}: {states['compiling']} compiled something, {states['compiled']} ran "
            f"compiled, {states['eager']} ran eagerly",
            f"{_count(len(self.graphs), 'graph')} with {_count(self.operations, 'operation')}, "
            f"{_count(len(self.breaks), 'break')}, {_count(len(self.recompiles), 'guard failure')}",
        ]
        lines += [f"  break at {one.where or 'a line of a library'}: {one.reason}" for one in _distinct(self.breaks)]
        lines += [f"  {one.function} again, because {one.guard}" for one in _distinct(self.recompiles)]
        if self.codes:
            generated = sum(kernel.generated for kernel in self.kernels)
            lines.append(
                f"{_count(generated, 'generated kernel')}, {_count(len(self.kernels) - generated, 'library call')}: "
                f"{in_bytes(self.kernel_bytes)}"
            )
        lines += [
            f"kept for the backward pass: {in_bytes(one.after_bytes)} of {in_bytes(one.before_bytes)}"
            for one in self.saved
        ]
        return "\n".join(lines)


_SHOWN = 8
"""The most of one kind that are printed."""


def _distinct(events: tuple) -> list:
    """The first of each text, a few of them."""
    texts = {(getattr(one, "where", ""), getattr(one, "reason", None) or one.guard): one for one in reversed(events)}
    return list(reversed(texts.values()))[:_SHOWN]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
