"""Plain trees: nested dicts and lists of tensors, numbers, strings, booleans and None.

`plain` turns whatever an answer returned into such a tree, and marks what cannot be one as `Opaque`, so that the
comparison can say "got a numpy.ndarray" rather than fail. Nothing is compared and nothing is sent here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from labkit.cut import cut
from labkit.spec import Tree

MAX_DEPTH = 16
MAX_INT_BITS = 512
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)


@dataclass(frozen=True)
class Opaque:
    """Something that is not plain data: the name of its type and a short text of it."""

    type_name: str
    text: str = ""


def told(entry: object) -> str:
    """What an answer returned, or listed, for a message: a pair or three as a tuple, whatever it was; cut to a line.

    told(["gather", 0]) is "('gather', 0)", and of an iterator "something of type list_iterator".
    """
    if isinstance(entry, Opaque):
        return f"something of type {entry.type_name}"
    return cut(repr(tuple(entry) if isinstance(entry, list) and len(entry) in (2, 3) else entry), 60)


def plain(value: object, depth: int = 0) -> Tree:
    """A copy of `value` as a plain tree on the CPU, tensors detached and contiguous.

    Tuples become lists, numpy scalars Python numbers. Tensor subclasses, sparse and nested tensors, numpy arrays and
    any other object become `Opaque`: only plain tensors and parameters count as tensors.
    """
    if depth > MAX_DEPTH:
        return Opaque("nesting deeper than 16 levels")
    kind = type(value)
    if value is None or kind in (bool, float, str):
        return value
    if kind is int:
        return bounded(value)
    if kind in _PLAIN_TENSORS:
        return _plain_tensor(value)
    if kind in (list, tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping) and all(type(key) in (str, int) for key in value):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return bounded(value.item())
    return Opaque(_type_name(kind), _short(value))


def bounded(value: Tree) -> Tree:
    """The value; an integer too large for any float becomes Opaque, since comparing it would overflow."""
    if type(value) is int and value.bit_length() > MAX_INT_BITS:
        return Opaque("int", f"a number of {value.bit_length():,} bits")
    return value


def clone(tree: Tree) -> Tree:
    """A deep copy of a plain tree that shares no memory with it."""
    if isinstance(tree, torch.Tensor):
        return tree.clone()
    if isinstance(tree, list):
        return [clone(item) for item in tree]
    if isinstance(tree, dict):
        return {key: clone(item) for key, item in tree.items()}
    return tree


def part_of(tree: Tree, rank: int) -> Tree:
    """What one rank is fed of an exercise's inputs: all of them, but of "ranks" only its own part, as "mine"."""
    if not isinstance(tree, dict) or "ranks" not in tree:
        return tree
    common = {key: item for key, item in tree.items() if key != "ranks"}
    return {**common, "mine": tree["ranks"][rank]}


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, object]]:
    """Every leaf of a plain tree with its path, in order: ("grads.0", tensor)."""
    items: Iterator[tuple[object, object]]
    if isinstance(tree, dict):
        items = iter(tree.items())
    elif isinstance(tree, list):
        items = enumerate(tree)
    else:
        yield path, tree
        return
    for key, item in items:
        yield from leaves(item, f"{path}.{key}" if path else str(key))


def same(left: Tree, right: Tree) -> bool:
    """Whether two plain trees hold the same structure, types, dtypes and values; NaN equals NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and left.shape == right.shape and torch.equal(bytes_of(left), bytes_of(right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    return left == right


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a strided tensor, one after the other; they share its memory where it is contiguous."""
    flat = tensor.contiguous().reshape(-1)
    # One element is contiguous whatever its stride, and only with a stride of 1 does it have a view of bytes.
    flat = flat.as_strided((1,), (1,), flat.storage_offset()) if flat.numel() == 1 else flat
    # An empty one may have a stride of 0, as numpy's have, and then no view of bytes.
    return flat.view(torch.uint8) if flat.numel() else flat.new_empty(0, dtype=torch.uint8)


def _plain_tensor(value: torch.Tensor) -> torch.Tensor | Opaque:
    if value.layout is not torch.strided:
        return Opaque(f"{str(value.layout).removeprefix('torch.')} tensor")
    if value.is_nested:
        return Opaque("nested tensor")
    if value.device.type == "meta":
        return Opaque("tensor on the meta device, which holds no values")
    return value.detach().cpu().resolve_conj().resolve_neg().contiguous().clone()


def _type_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:
        return f"<its repr raised {type(error).__name__}>"
    text = without_addresses(text)
    return cut(text, 80)


def without_addresses(text: str) -> str:
    """A repr without the memory address, which differs from run to run and helps nobody."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
