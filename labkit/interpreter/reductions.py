"""Reductions and scans: right on bfloat16 and float8, and a combine function applied to whole slices, not to elements.

A custom reduction goes through a tree of neighbours, as on a GPU, so it needs an associative function and nothing more.
A function that branches on its values keeps the stock, element by element way.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import ModuleType

import numpy as np

from labkit.interpreter.floats import is_stored_as_bits, narrow, widen

_BRANCHES = (ast.If, ast.IfExp, ast.While, ast.BoolOp, ast.Assert)


def patch(interpreter: ModuleType) -> None:
    """Replace the sums, extremes and custom reductions of the interpreter, and its cumulative sums."""
    _patch_types(interpreter, interpreter.ReduceOps)
    _patch_types(interpreter, interpreter.ScanOps)
    _patch_custom_reduction(interpreter)


def _patch_types(interpreter: ModuleType, operations: type) -> None:
    stock = operations.apply_impl
    float32 = interpreter.tl.float32
    built_in = _functions_computed_by_numpy(interpreter.tl.standard)

    def apply_impl(self, input):
        stored = [is_stored_as_bits(tensor.dtype) for tensor in input]
        if not any(stored) or _key(self.combine_fn) not in built_in:
            # A custom function works on tensors, whose operations know the types.
            return stock(self, input)
        wide = tuple(
            self.to_tensor(widen(tensor.handle.data, tensor.dtype), float32) if bits else tensor
            for tensor, bits in zip(input, stored)
        )
        result = stock(self, wide)
        several = isinstance(result, list | tuple)
        # Sums come back rounded once; extremes are values of the input, and an index stays what it is.
        rounded = [
            self.to_tensor(narrow(tensor.handle.data, source.dtype), source.dtype)
            if bits and tensor.dtype.scalar == float32
            else tensor
            for tensor, source, bits in zip(result if several else [result], input, stored)
        ]
        rounded = [_scalar_like(one, tensor) for one, tensor in zip(rounded, result if several else [result])]
        return rounded if several else rounded[0]

    operations.apply_impl = apply_impl


def _scalar_like(tensor, model):
    """A reduction to one number has no dimensions, though the interpreter keeps its data in an array of one."""
    if not model.type.is_block() and tensor.type.is_block():
        tensor.type = tensor.type.scalar
        tensor.shape = model.shape
        tensor.handle.data = tensor.handle.data.reshape(1)
    return tensor


def _functions_computed_by_numpy(standard: ModuleType) -> frozenset:
    names = (
        "_argmin_combine_tie_break_left",
        "_argmax_combine_tie_break_left",
        "_elementwise_max",
        "_elementwise_min",
        "_sum_combine",
        "_prod_combine",
    )
    return frozenset(_key(getattr(standard, name)) for name in names)


def _key(function) -> int:
    """By identity: the hash of a Triton function is one of its whole source."""
    return id(getattr(function, "fn", function))


def _patch_custom_reduction(interpreter: ModuleType) -> None:
    stock = interpreter.ReduceOps.generic_reduce
    tl = interpreter.tl
    Handle = interpreter.TensorHandle

    def block(data: np.ndarray, dtype):
        kind = tl.block_type(dtype, list(data.shape)) if data.shape else dtype
        return tl.core.tensor(Handle(np.ascontiguousarray(data), dtype.scalar), kind)

    def generic_reduce(self, input):
        shape = input[0].handle.data.shape
        axis = self.axis
        length = int(np.prod(shape)) if axis is None else shape[axis]
        if length < 2 or length & (length - 1) or branches(self.combine_fn.fn):
            return stock(self, input)
        columns = [_axis_first(tensor.handle.data, axis) for tensor in input]
        while len(columns[0]) > 1:
            # Flat, so that a single column is a block as well and not a scalar.
            rest = columns[0].shape[1:]
            left = [block(column[0::2].reshape(-1), tensor.dtype) for column, tensor in zip(columns, input)]
            right = [block(column[1::2].reshape(-1), tensor.dtype) for column, tensor in zip(columns, input)]
            combined = self.combine_fn.fn(*left, *right)
            combined = combined if isinstance(combined, tuple | tl.core.tuple) else (combined,)
            columns = [_data(one, tensor.handle.data.dtype).reshape(-1, *rest) for one, tensor in zip(combined, input)]
        results = [column[0] for column in columns]
        if self.keep_dims:
            results = [data.reshape(kept_shape(shape, axis)) for data in results]
        return [self.to_tensor(data if data.shape else data.item(), t.dtype) for data, t in zip(results, input)]

    interpreter.ReduceOps.generic_reduce = generic_reduce


def _axis_first(data: np.ndarray, axis: int | None) -> np.ndarray:
    return data.reshape(-1) if axis is None else np.moveaxis(data, axis, 0)


def _data(combined, dtype: np.dtype) -> np.ndarray:
    return np.asarray(combined.handle.data).astype(dtype, copy=False)


def kept_shape(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    """The shape of a reduction that keeps its dimensions, with length 1."""
    return tuple(1 if axis is None or i == axis % len(shape) else n for i, n in enumerate(shape))


def branches(function) -> bool:
    """Whether a function decides anything by the values that it is given, which slices of values cannot."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return True
    return any(isinstance(node, _BRANCHES) for node in ast.walk(tree))
