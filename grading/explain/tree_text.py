"""A tree as short text: every leaf on a line, of a large tensor its ends and what lies around one place.

It is for reading, not for reading back.
"""

from __future__ import annotations

import torch

from grading.terminal import one_line
from labkit.spec import Tree
from labkit.tree import Opaque, leaves

ENDS = 4
AROUND = 3
MAX_TEXT = 200
MAX_LEAVES = 12


def lines_of(tree: Tree, place: tuple[str, tuple[int, ...] | None] | None = None) -> list[str]:
    """One line a leaf: "x: float32 (2, 3)  1, 2, 3, ..., 5, 6". place: path and index of an element to show."""
    found = list(leaves(tree))
    lines = []
    for path, leaf in found[:MAX_LEAVES]:
        index = place[1] if place and place[0] == path else None
        lead = f"{path}: " if path else ""
        lines.append(one_line(lead + _leaf(leaf, index)))
    if len(found) > MAX_LEAVES:
        lines.append(f"and {len(found) - MAX_LEAVES:,} more")
    return lines or ["nothing"]


def _leaf(leaf: object, index: tuple[int, ...] | None) -> str:
    if isinstance(leaf, torch.Tensor):
        return _tensor(leaf, index)
    if isinstance(leaf, Opaque):
        return _short(f"{leaf.type_name}: {leaf.text}" if leaf.text else leaf.type_name)
    return _short(repr(leaf))


def _tensor(tensor: torch.Tensor, index: tuple[int, ...] | None) -> str:
    flat = tensor.reshape(-1)
    shape = f"({', '.join(map(str, tensor.shape))}{',' if tensor.dim() == 1 else ''})"
    text = f"{str(tensor.dtype).removeprefix('torch.')} {shape}"
    if flat.numel() <= 2 * ENDS:
        text += f"  {_values(flat)}" if flat.numel() else "  (empty)"
    else:
        text += f"  {_values(flat[:ENDS])}, ..., {_values(flat[-ENDS:])}"
    if index is None or not _is_left_out(tensor, index):
        return text
    *row, last = index
    line = tensor[tuple(row)] if row else tensor
    first = max(last - AROUND, 0)
    at = ", ".join([*map(str, row), f"{first}:{min(last + AROUND + 1, len(line))}"])
    return f"{text}; at [{at}]  {_values(line[first : last + AROUND + 1])}"


def _is_left_out(tensor: torch.Tensor, index: tuple[int, ...]) -> bool:
    """Whether the tensor has this element and its ends do not show it."""
    if len(index) != tensor.dim() or not all(0 <= i < n for i, n in zip(index, tensor.shape, strict=True)):
        return False
    flat = 0
    for i, n in zip(index, tensor.shape, strict=True):
        flat = flat * n + i
    return ENDS <= flat < tensor.numel() - ENDS


def _values(flat: torch.Tensor) -> str:
    return ", ".join(_value(value) for value in flat.tolist())


def _value(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + " ..."
