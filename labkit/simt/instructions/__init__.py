"""What each instruction does: tables by opcode, one module for each family.

An entry is a function (instruction, its place) -> step; a step changes the machine's registers or memory for the lanes
of its mask. One that meets a form it does not know refuses it by name and line (`values.refuse`).
"""

from labkit.simt.instructions import (
    async_copies,
    atomics,
    bits,
    carries,
    conversions,
    floats,
    integers,
    loads,
    matrices,
    moves,
    predicates,
    synchronization,
    warps,
)

TABLE = {
    **integers.TABLE,
    **bits.TABLE,
    **moves.TABLE,
    **predicates.TABLE,
    **conversions.TABLE,
    **loads.TABLE,
    **atomics.TABLE,
    **warps.TABLE,
    **synchronization.TABLE,
    **async_copies.TABLE,
    **matrices.TABLE,
    **floats.dispatch(
        integers.TABLE | {name: carries.with_carry(integers.TABLE[name]) for name in ("add", "sub", "mad")}
    ),
    **{name: carries.with_carry(integers.TABLE["add"]) for name in ("addc", "subc", "madc")},
}
"""opcode -> how it is built."""
