"""Lab 11: small functions of tensors as lines of Python, so that a case can hold one and an oracle can read it.

A line is one operation. Nothing here knows which of them matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

BREAK = "torch._dynamo.graph_break()"
"""The line at which a graph ends."""


def source_of(lines: Sequence[str]) -> str:
    """ "def model(x, y):" and the lines below it."""
    return "\n".join(["def model(x, y):", *(f"    {line}" for line in lines)])


def function_of(lines: Sequence[str]) -> Callable[..., Any]:
    """The function of x and y with these lines."""
    names: dict[str, Any] = {"torch": torch, "F": functional}
    exec(compile(source_of(lines), "<model>", "exec"), names)
    return names["model"]
