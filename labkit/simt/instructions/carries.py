"""Additions, subtractions and multiplications that pass a carry on: add.cc, addc, sub.cc, subc, mad.cc, madc.

The carry is one flag of each lane. A subtraction sets it where nothing was borrowed, because a - b is a + ~b + 1 on the
hardware, and the compiler's division of 128-bit numbers reads it by addc. PTX has it for arithmetic on numbers of
several words, which stands in one basic block, so that it is not kept from one to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.simt.instructions.integers import product
from labkit.simt.program import Instruction
from labkit.simt.types import bits_of
from labkit.simt.values import Step, reader, type_of, writer

Make = Callable[[Instruction, int], Step]


def with_carry(plain: Make) -> Make:
    """An instruction that reads or writes the carry; `plain` where it does neither."""

    def make(one: Instruction, pc: int) -> Step:
        takes, gives = one.opcode in ("addc", "subc", "madc"), "cc" in one.modifiers
        if not takes and not gives:
            return plain(one, pc)
        dtype = type_of(one)
        bits = bits_of(dtype)
        put, read = writer(one.operands[0], one), [reader(operand, dtype, one) for operand in one.operands[1:]]
        minus = one.opcode.startswith("sub")

        def run(m: Any) -> None:
            values = [value(m) for value in read]
            if len(values) == 3:
                values = [product(values[0], values[1], one.modifiers[0]), values[2]]
            a, b = (value.view(bits) for value in values)
            b = ~b if minus else b
            before = m.carry.astype(bits) if takes else bits.type(minus)
            first = a + b
            total = first + before
            if gives:
                m.carry = (first < a) | (total < first)
            put(m, total)

        return run

    return make
