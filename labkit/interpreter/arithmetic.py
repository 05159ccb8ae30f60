"""Casts and elementwise arithmetic on bfloat16 and float8: in float32, rounded once, as PyTorch and a GPU do it.

The stock interpreter computes on the raw bits. Types that numpy has are left to it.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from labkit.interpreter.floats import is_stored_as_bits, narrow, truncate_bf16, widen


def patch(interpreter: ModuleType) -> None:
    """Replace the casts and the elementwise operations of the interpreter's builder by ones that look at the type."""
    _patch_casts(interpreter)
    _patch_operations(interpreter)
    _patch_constants(interpreter)


def widened(handle, handle_type, float32):
    """The same values in float32 where they are stored as bits; otherwise the handle itself."""
    return handle_type(widen(handle.data, handle.dtype), float32) if is_stored_as_bits(handle.dtype) else handle


def _patch_casts(interpreter: ModuleType) -> None:
    builder, Handle, language = interpreter.InterpreterBuilder, interpreter.TensorHandle, interpreter.tl
    stock_cast, stock_convert = builder.cast_impl, builder.create_fp_to_fp
    toward_zero = interpreter._ir.ROUNDING_MODE.RTZ

    def cast_impl(self, src, dst_type):
        target = dst_type.scalar
        if src.dtype.scalar == target:
            return src
        src = widened(src, Handle, language.float32)
        if is_stored_as_bits(target):
            return Handle(narrow(src.data, target), target)
        return Handle(src.data, target) if src.dtype.scalar == target else stock_cast(self, src, dst_type)

    def create_fp_to_fp(self, src, dst_type, rounding_mode):
        target = dst_type.scalar
        ours = is_stored_as_bits(src.dtype) or is_stored_as_bits(target)
        if rounding_mode == toward_zero and target == language.bfloat16:
            return Handle(truncate_bf16(widened(src, Handle, language.float32).data), target)
        if rounding_mode == toward_zero or not ours:
            return stock_convert(self, src, dst_type, rounding_mode)
        if target.name not in _NAMES_IN_NUMPY and not is_stored_as_bits(target):
            return stock_convert(self, src, dst_type, rounding_mode)
        return cast_impl(self, src, dst_type)

    builder.cast_impl, builder.create_fp_to_fp = cast_impl, create_fp_to_fp


_NAMES_IN_NUMPY = ("fp16", "fp32", "fp64")


def _patch_operations(interpreter: ModuleType) -> None:
    builder, Handle, language = interpreter.InterpreterBuilder, interpreter.TensorHandle, interpreter.tl
    stock_binary, stock_unary = builder.binary_op, builder.unary_op
    stock_ternary, stock_fma = builder.ternary_op, builder.create_fma

    def rounded(values: np.ndarray, dtype) -> object:
        if values.dtype == np.bool_:
            return Handle(values, language.int1)
        return Handle(narrow(values, dtype), dtype.scalar)

    def binary_op(self, lhs, rhs, op):
        if not is_stored_as_bits(lhs.dtype):
            result = stock_binary(self, lhs, rhs, op)
            if result.data.dtype == np.bool_:
                # The stock interpreter gives a comparison the type of what is compared, and casts by it later.
                result.dtype = language.int1
            return result
        return rounded(op(widen(lhs.data, lhs.dtype), widen(rhs.data, rhs.dtype)), lhs.dtype)

    def unary_op(self, arg, op):
        if not is_stored_as_bits(arg.dtype):
            return stock_unary(self, arg, op)
        return rounded(op(widen(arg.data, arg.dtype)), arg.dtype)

    def ternary_op(self, lhs, rhs, other, op):
        # The first operand of a select is a condition, and a select moves bits; only a clamp computes.
        if not is_stored_as_bits(lhs.dtype):
            return stock_ternary(self, lhs, rhs, other, op)
        return rounded(op(*(widen(x.data, x.dtype) for x in (lhs, rhs, other))), other.dtype)

    def create_fma(self, x, y, z):
        if not is_stored_as_bits(z.dtype):
            return stock_fma(self, x, y, z)
        return rounded(fused(*(widen(v.data, v.dtype) for v in (x, y, z))), z.dtype)

    builder.binary_op, builder.unary_op = binary_op, unary_op
    builder.ternary_op, builder.create_fma = ternary_op, create_fma
    if hasattr(builder, "create_clampf"):
        _patch_clamp(interpreter)


def fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x y + z of values with at most 12 significant bits, in float32 such that rounding it to fewer bits rounds once.

    Rounded to odd (Boldo and Melquiond, 2008): an inexact result gets a last bit of one, so that it never looks like
    a tie to the next rounding.
    """
    product, term = x.astype(np.float64) * y, z.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = product + term
        of_term = total - product
        lost = (product - (total - of_term)) + (term - of_term)
        single = np.asarray(total, dtype=np.float32)
        rest = (total - single) + lost
        odd = np.nextafter(single, np.copysign(np.float32(np.inf), rest).astype(np.float32))
    even = single.view(np.uint32) & 1 == 0
    return np.where(np.isfinite(total) & np.isfinite(single) & (rest != 0) & even, odd, single)


def _patch_clamp(interpreter: ModuleType) -> None:
    builder, Handle, language = interpreter.InterpreterBuilder, interpreter.TensorHandle, interpreter.tl
    stock = builder.create_clampf

    def create_clampf(self, arg, low, high, propagate_nans):
        if not is_stored_as_bits(arg.dtype):
            return stock(self, arg, low, high, propagate_nans)
        clamped = stock(self, *(widened(x, Handle, language.float32) for x in (arg, low, high)), propagate_nans)
        return Handle(narrow(clamped.data, arg.dtype), arg.dtype.scalar)

    builder.create_clampf = create_clampf


def _patch_constants(interpreter: ModuleType) -> None:
    """A bfloat16 constant: 3.7.1 has none, 3.9's goes through the cast."""

    def get_bf16(self, value):
        return interpreter.TensorHandle(narrow(np.array([value]), interpreter.tl.bfloat16), interpreter.tl.bfloat16)

    interpreter.InterpreterBuilder.get_bf16 = get_bf16
