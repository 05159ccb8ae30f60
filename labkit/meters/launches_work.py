"""What a launch did at each place of its source: bytes that were loaded and stored there, FLOPs of matrix products.

A place is where the text calls `tl.load`, `tl.store` or `tl.dot`, which is also how compiled code says where an
instruction is from. Code that never ran has no place here. What the compiler made of it is not looked at.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, ModuleType

import numpy as np

Place = tuple[str, int, int]
"""The last part of the file's name, the line, and the column, from 0; columns are counted in bytes."""
Site = tuple[Place, Place | None]
"""A place, and where the function that holds it was called from; None in the kernel itself."""

_LABKIT = Path(__file__).parents[1]


@dataclass
class LaunchWork:
    """By site: loads and stores in bytes (masked lanes left out), products in FLOPs (of `tl.dot` alone)."""

    loads: Counter[Site] = field(default_factory=Counter)
    stores: Counter[Site] = field(default_factory=Counter)
    products: Counter[Site] = field(default_factory=Counter)

    def add(self, other: LaunchWork) -> None:
        self.loads += other.loads
        self.stores += other.stores
        self.products += other.products


def follow(interpreter: ModuleType, work: LaunchWork, launch: FrameType) -> Callable[[], None]:
    """Write down what the programs of a launch do, until the function that is returned is called.

    launch: the frame that runs the programs; beneath it all is kernel. It hooks into whatever is hooked in already.
    """
    builder = interpreter.interpreter_builder
    places = _Places(launch)
    names = ("create_masked_load", "create_masked_store", "create_dot")
    load, store, dot = (getattr(builder, name) for name in names)
    before = {name: vars(builder)[name] for name in names if name in vars(builder)}

    def loaded(pointers, mask, *rest, **named):
        work.loads[places.here()] += _n_bytes(pointers, mask)
        return load(pointers, mask, *rest, **named)

    def stored(pointers, value, mask, *rest, **named):
        work.stores[places.here()] += _n_bytes(pointers, mask)
        return store(pointers, value, mask, *rest, **named)

    def multiplied(a, b, *rest):
        work.products[places.here()] += 2 * a.data.size * b.data.shape[-1]
        return dot(a, b, *rest)

    for name, hook in zip(names, (loaded, stored, multiplied)):
        setattr(builder, name, hook)

    def stop() -> None:
        for name in names:
            vars(builder).pop(name, None)
        vars(builder).update(before)

    return stop


def _n_bytes(pointers, mask) -> int:
    lanes = np.asarray(mask.data)
    item_bytes = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
    return int(np.count_nonzero(lanes)) * (pointers.data.size // max(lanes.size, 1)) * item_bytes


class _Places:
    """Tells where in a kernel's text its programs are."""

    def __init__(self, launch: FrameType) -> None:
        import triton

        self._launch = launch
        not_kernels = (Path(triton.__file__).parent, _LABKIT / "interpreter", _LABKIT / "meters")
        self._not_kernels = tuple(f"{folder}{os.sep}" for folder in not_kernels)
        self._known: dict[tuple[CodeType, int], Place | None] = {}

    def here(self) -> Site:
        """The site of the hook's caller."""
        found: list[Place] = []
        frame = sys._getframe(2)
        while frame is not None and frame is not self._launch and len(found) < 2:
            place = self._place(frame.f_code, frame.f_lasti)
            if place is not None:
                found.append(place)
            frame = frame.f_back
        return (found[0] if found else ("", 0, 0), found[1] if len(found) > 1 else None)

    def _place(self, code: CodeType, instruction: int) -> Place | None:
        key = (code, instruction)
        if key not in self._known:
            place = None
            if not code.co_filename.startswith(self._not_kernels):
                line, _, column, _ = list(code.co_positions())[instruction // 2]
                place = (os.path.basename(code.co_filename), line or 0, column or 0)
            self._known[key] = place
        return self._known[key]
