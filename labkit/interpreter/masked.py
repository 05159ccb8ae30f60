"""Masked lanes of a load without `other=` hold NaN or a huge integer, as a GPU's may hold anything.

The stock interpreter leaves 0 there, which hides a missing `other=` behind right sums. The NaN has bits of its own.
Sums and products pass them on as a rule, so `is_undefined` knows it again; functions such as exp return another NaN.
Lanes with `other=` are left as they are.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from labkit.interpreter.floats import is_stored_as_bits, narrow

_BITS = {"fp16": (np.uint16, 0x7EAA), "bf16": (np.uint16, 0x7FD5), "fp32": (np.uint32, 0x7FD55555)}
_BITS["fp64"] = (np.uint64, 0x7FFAAAAAAAAAAAAA)
"""Triton's name -> the type of its bits, and a NaN whose upper bits are the same in all of them."""
_TAIL = {"fp16": 0, "bf16": 0, "fp32": 16, "fp64": 32}
"""Lower bits, which a conversion from a narrower type leaves 0."""


def patch(interpreter: ModuleType) -> None:
    """Replace the builder's masked load."""
    builder, Handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    stock = builder.create_masked_load

    def create_masked_load(self, ptrs, mask, other, *rest, **named):
        if other is None and not mask.data.all():
            kind = ptrs.get_element_ty()
            other = Handle(np.full(ptrs.data.shape, _undefined(kind, interpreter._get_np_dtype(kind))), kind)
        return stock(self, ptrs, mask, other, *rest, **named)

    builder.create_masked_load = create_masked_load


def is_undefined(values: np.ndarray, kind: object) -> bool:
    """Whether one of these comes from a masked lane without `other=`. kind: Triton's type of an element."""
    if kind.name not in _BITS or not values.size:
        return False
    integer, pattern = _BITS[kind.name]
    if values.dtype.kind == "f" and not np.isnan(values).any():
        return False
    tail, sign = _TAIL[kind.name], 1 << (8 * integer().itemsize - 1)
    upper = (np.ascontiguousarray(values).view(integer) & integer(sign - 1)) >> integer(tail)
    return bool((upper == integer(pattern >> tail)).any())


def _undefined(kind: object, stored: np.dtype) -> np.generic:
    """kind: Triton's type of an element. stored: numpy's, as the interpreter keeps it."""
    if kind.name in _BITS:
        integer, pattern = _BITS[kind.name]
        return np.array(pattern, integer).view(stored)[()]
    if is_stored_as_bits(kind):
        return narrow(np.array([np.nan]), kind)[0]
    return stored.type(True) if stored.kind == "b" else stored.type(np.iinfo(stored).max)
