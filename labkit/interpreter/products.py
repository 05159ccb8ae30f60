"""`tl.dot` with exact products of the operands that were given, summed in float32; tf32 only where it was asked for.

The stock interpreter multiplies bfloat16 as integers, takes seconds for float16, and never rounds to tf32. The order of
the sum is the processor's matrix product's, so the last bits differ from a GPU's, as one GPU's do from another's.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from labkit.interpreter.arithmetic import widened
from labkit.interpreter.floats import is_stored_as_bits, narrow


def patch(interpreter: ModuleType) -> None:
    """Replace the builder's matrix product."""
    builder, Handle, language = interpreter.InterpreterBuilder, interpreter.TensorHandle, interpreter.tl
    stock = builder.create_dot
    tf32 = interpreter._ir.INPUT_PRECISION.TF32

    def operand(handle, precision):
        handle = widened(handle, Handle, language.float32)
        if handle.data.dtype == np.float16:
            # float32 holds the products exactly, and numpy has a fast matrix product for it.
            return Handle(handle.data.astype(np.float32), language.float32)
        if precision == tf32 and handle.dtype.scalar == language.float32:
            return Handle(without_low_bits(handle.data), language.float32)
        return handle

    def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        # Only float32 is rounded to tf32: narrower types are exact in it.
        a, b = operand(a, input_precision), operand(b, input_precision)
        if not is_stored_as_bits(d.dtype):
            return stock(self, a, b, d, input_precision, max_num_imprecise_acc)
        total = np.matmul(a.data, b.data) + widened(d, Handle, language.float32).data
        return Handle(narrow(total, d.dtype), d.dtype.scalar)

    builder.create_dot = create_dot


def without_low_bits(values: np.ndarray) -> np.ndarray:
    """float32 values as a tf32 matrix unit reads them: it ignores the 13 lowest bits of the mantissa."""
    return (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
