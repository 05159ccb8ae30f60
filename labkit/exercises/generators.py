"""What a sampler's random numbers may depend on: another state of the global generators, and another process.

Played in this process, for drivers that compare what an answer draws in each.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import torch


@contextmanager
def global_generators(seed: int) -> Iterator[list[str]]:
    """Seed the global random numbers of torch, of Python and of NumPy if it is loaded.

    At the end the list names those that go on with another number than right after the seed, and Python's and NumPy's
    are where they were before.
    """
    numpy = sys.modules.get("numpy")
    kept = random.getstate(), numpy and numpy.random.get_state()
    _seed(seed, numpy)
    untouched = _draws(numpy)
    _seed(seed, numpy)
    changed: list[str] = []
    try:
        yield changed
        changed += [owner for owner, number in _draws(numpy).items() if number != untouched[owner]]
    finally:
        random.setstate(kept[0])
        if numpy:
            numpy.random.set_state(kept[1])


def _seed(seed: int, numpy: ModuleType | None) -> None:
    # Not torch.manual_seed, which notes the caller's stack for each kind of device that has not begun to work.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    if numpy:
        numpy.random.seed(seed % 2**32)


def _draws(numpy: ModuleType | None) -> dict[str, float]:
    numbers = {"torch": torch.rand(()).item(), "Python": random.random()}
    return {**numbers, "NumPy": numpy.random.random()} if numpy else numbers


@contextmanager
def another_process(answer: type) -> Iterator[None]:
    """In the answer's own code hash() of a text is another number, as in another process: Python salts it in each."""
    names = getattr(getattr(answer, "__iter__", None), "__globals__", {})
    if "hash" in names:
        yield
        return
    names["hash"] = _salted
    try:
        yield
    finally:
        del names["hash"]


def _salted(value: object) -> int:
    return hash(("another process", value)) if _has_text(value) else hash(value)


def _has_text(value: object) -> bool:
    return isinstance(value, str | bytes) or (isinstance(value, tuple) and any(map(_has_text, value)))
