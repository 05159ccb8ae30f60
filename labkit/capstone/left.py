"""What is in memory between two steps of training: no more than is there after a step of the bill.

A tensor that a script puts aside and does not use is in no operation. So whatever Python holds is counted, and what a
graph of autograd holds behind it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import Tensor

from labkit.capstone.run import OnHost, Run


@contextmanager
def newly_made() -> Iterator[None]:
    """A block at whose beginning `left_bytes` begins to count: what is there already is not looked at again."""
    was_frozen = gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


def left_bytes() -> int:
    """Bytes of all tensors that the block has made, less those of the runs themselves and what was sent to the host."""
    things = gc.get_objects()
    tensors = [one for one in things if issubclass(type(one), Tensor)]
    elsewhere = [one._value for one in things if type(one) is OnHost and one._value is not None]
    for run in things:
        if issubclass(type(run), Run):
            elsewhere += run._own_tensors()
    seen = {one.untyped_storage()._cdata for one in elsewhere}
    n_bytes = 0
    # A gradient that nobody has asked for is no object of Python's.
    grads = [one.grad for one in tensors if one.is_leaf and one.grad is not None]
    for tensor in (*tensors, *grads, *_saved(tensors)):
        storage = tensor.untyped_storage()
        if storage._cdata not in seen:
            seen.add(storage._cdata)
            n_bytes += storage.nbytes()
    return n_bytes


def _saved(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """What the graphs of these keep for their backward passes."""
    to_do = [one.grad_fn for one in tensors if one.grad_fn is not None]
    seen = set(to_do)
    while to_do:
        node = to_do.pop()
        for name in dir(node):
            if name.startswith("_saved_") or name == "saved_tensors":
                yield from _read(node, name)
        for after, _ in node.next_functions:
            if after is not None and after not in seen:
                seen.add(after)
                to_do.append(after)


def _read(node: object, name: str) -> Iterator[Tensor]:
    try:
        value = getattr(node, name)
    except RuntimeError:
        return  # its backward pass was, and has freed it
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, Tensor):
            yield one
