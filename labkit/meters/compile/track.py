"""Count what `torch.compile` does in a block: graphs, breaks, frames, failed guards, calls, kernels, saved bytes.

It counts for any backend. Where that is inductor, code is generated and neither compiled nor loaded: no compiler is
needed, nothing is written, and the captured graph gives the values. What was compiled before the block is not seen
being compiled, and its calls count as eager; a graph of the block that runs behind its end counts there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labkit.meters.compile import torch_private
from labkit.meters.compile.kernels import code_of
from labkit.meters.compile.profile import Break, CallState, CompileProfile, Graph, Recompile
from labkit.meters.compile.saved import partition
from labkit.students_code import is_students, line_of


class Tracker:
    """Collects what happens; `profile` says what there is by now, and its fields are this object's, too."""

    def __init__(self, source: bool = False) -> None:
        self._with_source = source
        self._graphs: list[dict[str, Any]] = []
        self._breaks: list[Break] = []
        self._recompiles: list[dict[str, Any]] = []
        self._calls: list[dict[str, int]] = []
        self._codes: list = []
        self._saved: list = []
        self._frames = 0

    @property
    def profile(self) -> CompileProfile:
        return CompileProfile(
            graphs=tuple(Graph(**graph) for graph in self._graphs),
            breaks=tuple(self._breaks),
            frames=self._frames,
            recompiles=tuple(Recompile(**one) for one in self._recompiles),
            calls=tuple(_state(call) for call in self._calls),
            codes=tuple(self._codes),
            saved=tuple(self._saved),
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.profile, name)

    def __str__(self) -> str:
        return str(self.profile)

    @property
    def _call(self) -> int:
        return max(len(self._calls) - 1, 0)

    def _count(self, what: str) -> None:
        if self._calls:
            self._calls[-1][what] += 1

    def on_call(self, real: Any, callback: Any) -> Any:
        if callback is not None:  # it is where a function is called that must not be compiled
            self._calls.append({"compiled": 0, "ran": 0})
        return real(callback)

    def on_frame(self, real: Any, code: Any, *args: Any, **kwargs: Any) -> Any:
        n_graphs, n_recompiles = len(self._graphs), len(self._recompiles)
        try:
            result = real(code, *args, **kwargs)
        except Exception as error:
            if n_recompiles == len(self._recompiles) and str(error):
                self._breaks.append(_lost(error, self._call))
            raise
        if len(self._graphs) > n_graphs:
            self._frames += 1
            for recompile in self._recompiles[n_recompiles:]:
                recompile["compiled"] = True
        return result

    def on_guards(self, real: Any, cache_entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        reasons = real(cache_entries, frame, *args, **kwargs)
        guard = _guard(reasons[0]) if reasons else "a guard that PyTorch does not name"
        self._recompiles.append(
            {"function": _function(frame.f_code.co_name), "guard": guard, "call": self._call, "compiled": False}
        )
        return reasons

    def on_subgraph(self, real: Any, output: Any, tx: Any, reason: Any, *args: Any, **kwargs: Any) -> Any:
        if reason.graph_break:
            self._breaks.append(Break(_reason(reason.reason), _line(reason.user_stack), self._call))
        return real(output, tx, reason, *args, **kwargs)

    def on_backend(self, real: Any, output: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
        operations = tuple(
            torch_private.operation_name(node)
            for node in gm.graph.nodes
            if node.op in ("call_function", "call_method", "call_module")
        )
        n_inputs = sum(node.op == "placeholder" for node in gm.graph.nodes)
        compiled = real(output, gm, *args, **kwargs)
        graph = {"operations": operations, "n_inputs": n_inputs, "call": self._call, "runs": 0}
        self._graphs.append(graph)
        self._count("compiled")

        def counted(*args: Any) -> Any:
            graph["runs"] += 1
            self._count("ran")
            return compiled(*args)

        return counted

    def on_partition(self, real: Any, joint: Any, inputs: Any, **settings: Any) -> Any:
        forward, backward, saved = partition(real, joint, inputs, **settings)
        self._saved.append(saved)
        return forward, backward

    def inner_compile(self, gm: Any, inputs: Any, **settings: Any) -> Any:
        from torch._functorch.aot_autograd import make_boxed_func

        self._codes.append(code_of(gm, inputs, settings, self._with_source))
        return make_boxed_func(gm.forward)


@contextmanager
def track_compile(source: bool = False) -> Iterator[Tracker]:
    """Count what `torch.compile` does in this block.

        with track_compile() as compiled:
            step = torch.compile(model)
            for batch in batches:
                step(batch)
        print(compiled)

    The object has the fields of `CompileProfile`: `graphs`, `breaks`, `frames`, `recompiles`, `calls`, `kernels`,
    `saved`. source: whether inductor also writes its code, which then is `codes[0].source`.
    """
    tracker = Tracker(source)
    with (
        torch_private.patches(
            on_call=tracker.on_call,
            on_frame=tracker.on_frame,
            on_guards=tracker.on_guards,
            on_subgraph=tracker.on_subgraph,
            on_backend=tracker.on_backend,
        ),
        torch_private.stopped_inductor(tracker.inner_compile, tracker.on_partition),
    ):
        yield tracker


def _state(call: dict[str, int]) -> CallState:
    if call["compiled"]:
        return "compiling"
    return "compiled" if call["ran"] else "eager"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].strip() if text.strip() else "no reason is given"


def _reason(text: str) -> str:
    """PyTorch's own first line; what it says of a branch is the name of an instruction."""
    line = _first_line(text)
    return "a branch on the values of a tensor" if line.startswith("generic_jump") else line


def _function(name: str) -> str:
    """What is left of a function behind a break is a function of its own."""
    rest = re.fullmatch(r"torch_dynamo_resume_in_(.+)_at_(\d+)", name)
    return f"the rest of {rest[1]} from line {rest[2]}" if rest else name


def _guard(reason: str) -> str:
    """Without the number of the version that it belongs to, and without the place in PyTorch's own source."""
    text = _first_line(reason)
    head, _, rest = text.partition(": ")
    text = rest if head and head.split("/")[0].isdigit() else text
    return text.split("  #")[0].strip()


def _line(stack: Any) -> str:
    """The innermost line of the student's on a stack, empty where there is none."""
    for frame in reversed(list(stack or ())):
        if is_students(frame.filename):
            return line_of(frame.filename, frame.lineno)
    return ""


def _lost(error: Exception, call: int) -> Break:
    return Break(_reason(str(error)), _line(getattr(error, "real_stack", None)), call, frame_lost=True)
