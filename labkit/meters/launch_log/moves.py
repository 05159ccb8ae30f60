"""What PyTorch may do between launches so that it can be done again: fill, copy, sum up, scale and add.

Each operation becomes one or several entries of a small vocabulary; any other is "lost": what it wrote is unknown to
whoever repeats the log. Whether an entry may be repeated is theirs to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from labkit.spec import Tree

Ref = Callable[[torch.Tensor], dict[str, Tree]]

FILLS = frozenset(
    {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"}
    | {"zero_", "fill_", "scalar_tensor"}
)
COPIES = frozenset({"clone", "_to_copy", "copy_"})
SUMS = frozenset({"sum", "mean"})
ELEMENTWISE = frozenset({"add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"})
MAX_CONSTANTS = 64


def entries_of(name: str, args: Sequence, kwargs: dict, result: torch.Tensor, ref: Ref) -> list[dict[str, Tree]] | None:
    """The entries for an operation that wrote one tensor, `result`, not an empty one; None if it cannot be repeated."""
    if name in FILLS:
        return [{"do": "fill", "to": ref(result), "value": result.reshape(-1)[0].item()}]
    if name == "lift_fresh" and result.numel() <= MAX_CONSTANTS:
        return [{"do": "constants", "to": ref(result), "values": result.reshape(-1).tolist()}]
    if name in COPIES:
        source = args[1] if name == "copy_" else args[0]
        return [_copy(result, source.expand(result.shape), ref)]
    if name in SUMS:
        return _sum(name, args, kwargs, result, ref)
    if name in ELEMENTWISE:
        return _elementwise(name, args, kwargs, result, ref)
    if name in ("cat", "stack"):
        return _joined(name, args, kwargs, result, ref)
    if name == "constant_pad_nd":
        return _padded(args, result, ref)
    return None


def _copy(to: torch.Tensor, source: torch.Tensor, ref: Ref) -> dict[str, Tree]:
    return {"do": "copy", "to": ref(to), "from": ref(source)}


def _sum(name: str, args: Sequence, kwargs: dict, result: torch.Tensor, ref: Ref) -> list[dict[str, Tree]]:
    dims = args[1] if len(args) > 1 else kwargs.get("dim")
    dims = list(range(args[0].dim())) if not dims else [dim % max(args[0].dim(), 1) for dim in dims]
    return [{"do": "sum", "to": ref(result), "from": ref(args[0]), "dims": dims, "name": name}]


def _elementwise(
    name: str, args: Sequence, kwargs: dict, result: torch.Tensor, ref: Ref
) -> list[dict[str, Tree]] | None:
    if kwargs.get("rounding_mode"):
        return None
    sides = [
        {"tensor": ref(side.expand(result.shape))} if isinstance(side, torch.Tensor) else {"plain": side}
        for side in args[:2]
    ]
    times = kwargs.get("alpha", 1)
    return [
        {"do": name.rstrip("_"), "to": ref(result), "left": sides[0], "right": sides[1], "times": times, "name": name}
    ]


def _joined(name: str, args: Sequence, kwargs: dict, result: torch.Tensor, ref: Ref) -> list[dict[str, Tree]]:
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    entries, start = [], 0
    for part in args[0]:
        part = part.unsqueeze(dim) if name == "stack" else part
        if part.numel():
            entries.append(_copy(result.narrow(dim, start, part.shape[dim]), part, ref))
        start += part.shape[dim] if part.dim() == result.dim() else 0
    return entries


def _padded(args: Sequence, result: torch.Tensor, ref: Ref) -> list[dict[str, Tree]]:
    value = args[2] if len(args) > 2 else 0
    inner, source = result, args[0]
    for i in range(len(args[1]) // 2):
        before, after = args[1][2 * i : 2 * i + 2]
        dim = result.dim() - 1 - i
        inner = inner.narrow(dim, max(before, 0), result.shape[dim] - max(before, 0) - max(after, 0))
        # Negative padding cuts off.
        source = source.narrow(dim, max(-before, 0), inner.shape[dim])
    return [{"do": "pad", "to": ref(result), "inner": ref(inner), "from": ref(source), "value": value}]
