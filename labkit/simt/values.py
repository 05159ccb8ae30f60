"""Readers and writers of operands: what an instruction is built from when its function is loaded.

A reader takes the machine and returns an array in one of the shapes of `lanes`, in the dtype that the instruction
works in. A writer stores one. Register arrays are never changed in place, so that equal identity means equal values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.simt.program import Address, Immediate, Instruction, Negated, Operand, Register, Special, Symbol
from labkit.simt.types import bits_of, dtype_of

if TYPE_CHECKING:
    Machine = Any

Reader = Callable[["Machine"], np.ndarray]
Writer = Callable[["Machine", np.ndarray], None]
Step = Callable[["Machine"], None]

DYNAMIC = {"%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo"}


class Unsupported(NotImplementedError):
    """An instruction or operand that is not executed. Its text names it and the line."""


def refuse(one: Instruction, why: str = "") -> Unsupported:
    """The error for this instruction."""
    more = f" ({why})" if why else ""
    return Unsupported(f"line {one.line}: the instruction {one.name} is not executed{more}")


def constant(value: int | float, dtype: np.dtype) -> np.ndarray:
    """[1, 1] of this dtype; an integer wraps to it. A float constant of an integer type gives its bits."""
    if dtype.kind == "b":
        return np.array([[bool(value)]])
    if dtype.kind == "f":
        return np.array([[value]], dtype)
    if isinstance(value, float):
        return np.array([[value]], np.float32 if dtype.itemsize == 4 else np.float64).view(dtype)
    whole = value % (1 << (8 * dtype.itemsize))
    return np.array([[whole]], bits_of(dtype)).view(dtype)


def resize(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The bits of a value as another dtype: cut off where it is smaller, extended by the value's own sign else."""
    if value.dtype == dtype:
        return value
    if value.dtype.itemsize == dtype.itemsize and bool not in (value.dtype, dtype):
        return value.view(dtype)
    if value.dtype.kind == "f":
        value = value.view(bits_of(value.dtype))
    if dtype.kind == "b":
        return value != 0
    whole = np.dtype(f"{'i' if value.dtype.kind == 'i' else 'u'}{dtype.itemsize}")
    return value.astype(whole).view(dtype)


def reader(operand: Operand | None, dtype: np.dtype, one: Instruction) -> Reader:
    """How to read this operand as this dtype. one: the instruction, for errors."""
    if isinstance(operand, Register):
        slot = operand.slot
        if dtype_of(operand.type) == dtype:
            return lambda m: m.regs[slot]
        return lambda m: resize(m.regs[slot], dtype)
    if isinstance(operand, Immediate):
        fixed = constant(operand.value, dtype)
        return lambda m: fixed
    if isinstance(operand, Special):
        return _special(operand.name, dtype, one)
    if isinstance(operand, Symbol):
        name, offset = operand.name, operand.offset
        return lambda m: constant(m.symbol(name) + offset, dtype)
    if isinstance(operand, Negated):
        inner = reader(operand.register, dtype, one)
        return lambda m: ~inner(m)
    raise refuse(one, "one of its operands")


def _special(name: str, dtype: np.dtype, one: Instruction) -> Reader:
    if name in DYNAMIC:
        return lambda m: constant(m.steps, dtype)
    if name == "%dynamic_smem_size" or name == "%total_smem_size":
        return lambda m: constant(m.smem_size(name), dtype)
    if not name.startswith(
        ("%tid", "%ntid", "%ctaid", "%nctaid", "%lane", "%warp", "%nwarp", "%grid", "%smid", "%nsmid")
    ):
        raise refuse(one, f"the register {name}")
    return lambda m: resize(m.lanes.special[name], dtype)


def writer(operand: Operand | None, one: Instruction) -> Writer:
    """How to store a result; lanes that are not active, and may still need what they have, keep it."""
    if operand is None:
        return lambda m, value: None
    if not isinstance(operand, Register):
        raise refuse(one, "its result")
    slot, dtype = operand.slot, dtype_of(operand.type)

    def write(m: Machine, value: np.ndarray) -> None:
        if value.dtype != dtype:
            value = resize(value, dtype)
        if slot in m.blend:
            value = np.where(m.mask.array, value, m.regs[slot])
        m.regs[slot] = value

    return write


def address_reader(operand: Operand | None, one: Instruction) -> Reader:
    """The bytes that an operand in brackets points to, int64."""
    if isinstance(operand, Symbol):
        operand = Address(operand)
    if not isinstance(operand, Address):
        raise refuse(one, "its address")
    base, offset = operand.base, operand.offset
    if isinstance(base, Register):
        slot = base.slot
        if dtype_of(base.type).itemsize == 8:
            if not offset:
                return lambda m: m.regs[slot].view(np.int64)
            return lambda m: m.regs[slot].view(np.int64) + offset
        # Added as the hardware adds, in 32 bits: of tile[63 - t] the compiler makes a base below 0 and an offset.
        wrapped = np.uint32(offset % (1 << 32))
        return lambda m: (m.regs[slot].view(np.uint32) + wrapped).astype(np.int64)
    if isinstance(base, Symbol):
        name, offset = base.name, offset + base.offset
        return lambda m: np.array([[m.symbol(name) + offset]], np.int64)
    fixed = np.array([[base.value + offset]], np.int64)
    return lambda m: fixed


def type_of(one: Instruction, at: int = -1) -> np.dtype:
    """The dtype that a modifier names. Raises `Unsupported`."""
    try:
        return dtype_of(one.modifiers[at])
    except (KeyError, IndexError):
        raise refuse(one) from None
