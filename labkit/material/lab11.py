"""Lab 11: what the notebook takes as given: a reader of graphs, and a model that is hard to compile."""

from __future__ import annotations

import logging
import operator
import warnings

import torch
from torch import Tensor, nn

from labkit.exercises.lab11.break_even import Costs
from labkit.exercises.lab11.broken import BrokenModel
from labkit.exercises.lab11.served import WARM_UP, ServedModel
from labkit.exercises.lab11.trace_or_script import Gate

__all__ = [
    "WARM_UP",
    "BrokenModel",
    "Costs",
    "Gate",
    "Numbered",
    "ServedModel",
    "compiler_log",
    "print_graph",
    "schema_of",
    "writes",
]

_IN_PLACE = frozenset(
    getattr(operator, name)
    for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul", "iand", "ior", "ixor")
)


class _Kept(logging.Handler):
    """Keeps the first line of each warning."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage().strip().splitlines()[0])


def compiler_log() -> list[str]:
    """From now on the compiler's warnings go to this list, a line each, and no longer below the cells."""

    lines: list[str] = []
    for name in ("torch._dynamo", "torch._inductor"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [_Kept(lines)], False
    warnings.filterwarnings("ignore", module=r"torch\._(dynamo|inductor)")
    return lines


def schema_of(made: object) -> torch.FunctionSchema:
    """What an operator takes, writes and returns, whichever way of torch.library has made it."""
    if isinstance(made, torch.library.CustomOpDef):
        return made._opoverload._schema
    return getattr(made, "default", made)._schema


def writes(node: torch.fx.Node) -> bool:
    """Whether a node of a graph writes into a tensor that it is given: `x.add_(1)`, `x[0] = 0`, `x += 1`, `out=x`.

    It goes by names, as PyTorch's own methods and functions have them.
    """
    if node.op not in ("call_function", "call_method"):
        return False
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    named_so = name.endswith("_") and not name.endswith("__")
    given = node.kwargs.get("out") is not None or bool(node.kwargs.get("inplace"))
    return named_so or given or node.target in _IN_PLACE or node.target is operator.setitem


def print_graph(gm: torch.fx.GraphModule) -> None:
    """The nodes of a graph, one a line: op, name, target, arguments, and how many nodes use it."""
    rows = [("op", "name", "target", "args", "users")]
    for node in gm.graph.nodes:
        target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
        args = ", ".join(map(str, node.args[0] if node.op == "output" else node.args))
        rows.append((node.op, node.name, target, args, str(len(node.users))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


class Numbered(nn.Module):
    """A layer that differs from others of its kind in a number alone."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(x) / self.number
