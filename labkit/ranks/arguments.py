"""The tensors that a rank hands to a collective: checked against what the call says of them, and cut into parts.

Only this rank's own arguments are looked at; whether they fit those of the others is the network's to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from labkit.ranks.collectives import form
from labkit.ranks.errors import CommError


def tensor_of(rank: int, tensor: object, call: str, advice: str = "") -> torch.Tensor:
    """The tensor. Raises CommError where it is none."""
    if not isinstance(tensor, torch.Tensor):
        raise CommError(f"rank {rank} calls {call} with a {type(tensor).__name__}: it must be a tensor{advice}")
    return tensor


def tensors_like(rank: int, n_ranks: int, tensors: object, like: torch.Tensor | None, call: str) -> None:
    """Raise CommError unless there is a tensor for each rank, each of the form of `like`, where that is given.

    call: with its preposition, "all_gather into".
    """
    wish = f"rank {rank} calls {call}"
    if not isinstance(tensors, list | tuple) or not all(isinstance(one, torch.Tensor) for one in tensors):
        raise CommError(f"{wish} a {type(tensors).__name__}: it must be a list of one tensor for each rank")
    if len(tensors) != n_ranks:
        raise CommError(f"{wish} {len(tensors)} tensors: there are {n_ranks} ranks")
    for other, one in enumerate(tensors):
        if like is not None and (one.shape, one.dtype) != (like.shape, like.dtype):
            raise CommError(
                f"{wish} tensors of which number {other} is {form(one)}, and the tensor beside them {form(like)}"
            )


def in_chunks(
    rank: int, n_ranks: int, whole: object, part: object, call: str, whole_name: str, part_name: str
) -> tuple[torch.Tensor, ...]:
    """`whole` as views of one part for each rank, each of the form of `part`. Raises CommError."""
    whole, part = (tensor_of(rank, one, call) for one in (whole, part))
    fits = part.dim() > 0 and whole.shape == (n_ranks * part.shape[0], *part.shape[1:])
    given = f"{whole_name} {form(whole)} and {part_name} {form(part)}"
    wish = f"rank {rank} calls {call} with {given}: {whole_name} must be"
    if not fits and whole.shape != (n_ranks, *part.shape):
        raise CommError(f"{wish} {n_ranks} times {part_name} in dimension 0, and of its dtype")
    if whole.dtype != part.dtype:
        raise CommError(f"{wish} of the dtype of {part_name}")
    return whole.detach().tensor_split(n_ranks) if fits else whole.detach().unbind()


def of_splits(
    rank: int, n_ranks: int, tensor: object, sizes: Sequence[int] | None, name: str
) -> tuple[torch.Tensor, ...]:
    """A tensor as views, one for each rank, of these sizes in dimension 0; equal ones without sizes.

    Raises CommError.
    """
    tensor = tensor_of(rank, tensor, "all_to_all_single")
    length = tensor.shape[0] if tensor.dim() else 0
    if sizes is None:
        if length % n_ranks:
            raise CommError(
                f"rank {rank} calls all_to_all_single with {name} {form(tensor)}, which {n_ranks} ranks cannot share "
                f"equally: give {name}_split_sizes"
            )
        sizes = [length // n_ranks] * n_ranks
    sizes = [size.__index__() if hasattr(size, "__index__") else -1 for size in sizes]
    if len(sizes) != n_ranks or min(sizes) < 0 or sum(sizes) != length:
        raise CommError(
            f"rank {rank} calls all_to_all_single with {name}_split_sizes {sizes}: they must be {n_ranks} whole "
            f"numbers of 0 or more whose sum is {length}, the length of {name}"
        )
    return tensor.detach().split(sizes) if tensor.dim() else (tensor,) * n_ranks
