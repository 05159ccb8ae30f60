"""`tl.atomic_add` on bfloat16: read, add in float32, round, write, one lane after the other.

The stock interpreter adds the raw bits. Triton allows no other atomic operation on bfloat16, and none on float8.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from labkit.interpreter.floats import is_stored_as_bits, narrow, widen


def patch(interpreter: ModuleType) -> None:
    """Replace the builder's atomic read-modify-write for types that are stored as bits."""
    builder, Handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    stock = builder.create_atomic_rmw
    memory = interpreter._interpreter

    def create_atomic_rmw(self, rmwOp, ptr, val, mask, sem, scope):
        if not is_stored_as_bits(val.dtype):
            return stock(self, rmwOp, ptr, val, mask, sem, scope)
        pointers, values, lanes = (part.copy() for part in np.broadcast_arrays(ptr.data, val.data, mask.data))
        before = np.zeros_like(values)
        nothing = np.zeros(1, values.dtype)
        # One by one: several lanes may name the same address, and each sum is rounded.
        for at in np.ndindex(pointers.shape):
            if not lanes[at]:
                continue
            pointer, on = pointers[at].reshape(1), np.ones(1, dtype=bool)
            before[at] = memory.load(pointer, on, nothing, values.dtype)[0]
            total = widen(before[at].reshape(1), val.dtype) + widen(values[at].reshape(1), val.dtype)
            memory.store(pointer, narrow(total, val.dtype), on)
        return Handle(before, val.dtype.scalar)

    builder.create_atomic_rmw = create_atomic_rmw
