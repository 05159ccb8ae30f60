"""The shape of a function: its basic blocks, which registers are still needed where, which parameters it writes to.

A block ends where lanes may part or wait: at a branch, a call, a return, a barrier, before and after an instruction
that the lanes of a warp execute together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from labkit.simt.program import Address, Function, Group, Instruction, Negated, Operand, Pair, Register, Symbol, Vector
from labkit.simt.tokens import PtxSyntaxError

JUMPS = {"bra", "brx"}
ENDS = {"ret", "exit", "trap"}
NO_RESULT = {"st", "red", "bra", "brx", "ret", "exit", "trap", "bar", "barrier", "membar", "fence", "call", "prefetch"}
NO_RESULT |= {
    "cp",
    "stmatrix",
    "nanosleep",
    "discard",
    "applypriority",
    "brkpt",
    "pmevent",
    "griddepcontrol",
    "prefetchu",
}


def is_warp_wide(one: Instruction) -> bool:
    """Whether the lanes of a warp execute it together."""
    if one.opcode in ("shfl", "vote", "match", "redux", "mma", "ldmatrix", "movmatrix", "stmatrix", "wmma"):
        return True
    return one.opcode in ("bar", "barrier") and "warp" in one.modifiers


def is_barrier(one: Instruction) -> bool:
    """Whether threads of a block wait for one another here."""
    return one.opcode in ("bar", "barrier") and "warp" not in one.modifiers


def ends_block(one: Instruction) -> bool:
    """Whether lanes may part or wait at this instruction."""
    return one.opcode in JUMPS | ENDS | {"call"} or is_barrier(one) or is_warp_wide(one)


@dataclass(frozen=True)
class Block:
    """Instructions start … end of a function, end excluded; the last one may be one that `ends_block`."""

    start: int
    end: int
    next: tuple[int, ...]


def blocks(function: Function) -> list[Block]:
    """The basic blocks in their order; `next` holds numbers of blocks, len(blocks) is past the end."""
    code = function.code
    leaders = {0, len(code), *function.labels.values()}
    for i, one in enumerate(code):
        if ends_block(one):
            leaders.add(i + 1)
            if is_warp_wide(one) or is_barrier(one):
                leaders.add(i)
    starts = sorted(leader for leader in leaders if leader <= len(code))
    number = {start: i for i, start in enumerate(starts)}
    found = []
    for start, end in pairwise(starts):
        last = code[end - 1]
        after: list[int] = []
        if last.opcode in JUMPS:
            after = [number[place_of(name, function, last)] for name in targets(last, function)]
        if last.opcode not in JUMPS | ENDS or last.guard is not None:
            after.append(number[end])
        found.append(Block(start, end, tuple(after)))
    return found


def place_of(label: str, function: Function, one: Instruction) -> int:
    """The index of the instruction that a label stands before. one: the jump. Raises `PtxSyntaxError`."""
    if label not in function.labels:
        raise PtxSyntaxError(f"line {one.line}: {one.name} jumps to {label}, which is no label of the kernel")
    return function.labels[label]


def targets(one: Instruction, function: Function) -> tuple[str, ...]:
    """The labels that a jump may go to."""
    if one.opcode == "brx":
        table = one.operands[1]
        return function.tables.get(table.name, ()) if isinstance(table, Symbol) else ()
    label = one.operands[0]
    return (label.name,) if isinstance(label, Symbol) else ()


def registers_of(operand: Operand | None) -> Iterator[Register]:
    """All registers in an operand."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Negated):
        yield operand.register
    elif isinstance(operand, Address):
        yield from registers_of(operand.base)
    elif isinstance(operand, Vector | Group):
        for item in operand.items:
            yield from registers_of(item)
    elif isinstance(operand, Pair):
        yield from registers_of(operand.first)
        yield from registers_of(operand.second)


def written_and_read(one: Instruction) -> tuple[set[int], set[int]]:
    """The slots that an instruction writes and reads."""
    has_result = one.opcode not in NO_RESULT and one.operands
    written = {r.slot for r in registers_of(one.operands[0])} if has_result else set()
    if has_result and isinstance(one.operands[0], Address):
        written = set()
    if one.opcode in ("setp", "mma") and one.opcode == "setp" and isinstance(one.operands[0], Pair):
        written = {r.slot for r in registers_of(one.operands[0])}
    if one.opcode in ("bar", "barrier") and "red" in one.modifiers:
        written = {r.slot for r in registers_of(one.operands[0])}
    read = {r.slot for operand in one.operands[1 if written else 0 :] for r in registers_of(operand)}
    if one.guard is not None:
        read |= {r.slot for r in registers_of(one.guard)}
        read |= written  # lanes whose guard is false keep what they have
    return written, read


def live_at_entry(function: Function, found: list[Block]) -> list[frozenset[int]]:
    """For each block, the registers whose values it or what follows may still read; one more for past the end."""
    effects = [written_and_read(one) for one in function.code]
    uses, kills = [], []
    for block in found:
        use: set[int] = set()
        kill: set[int] = set()
        for written, read in effects[block.start : block.end]:
            use |= read - kill
            kill |= written
        uses.append(use)
        kills.append(kill)
    live: list[set[int]] = [set() for _ in range(len(found) + 1)]
    changed = True
    while changed:
        changed = False
        for i in range(len(found) - 1, -1, -1):
            after: set[int] = set().union(*(live[j] for j in found[i].next))
            now = uses[i] | (after - kills[i])
            if now != live[i]:
                live[i], changed = now, True
    return [frozenset(one) for one in live]


def stored_parameters(function: Function) -> frozenset[str] | None:
    """Names of the parameters whose pointers it may write through; None: it cannot be told, so any of them.

    A register holds what came from a parameter if any of the instruction's operands does; a pointer that is loaded
    from memory or handed to a function is one that cannot be told.
    """
    if any(one.opcode == "call" for one in function.code):
        return None
    names = {p.name for p in function.parameters}
    origin: dict[int, set[str]] = {}
    changed = True
    while changed:
        changed = False
        for one in function.code:
            written, read = written_and_read(one)
            came = set().union(*(origin.get(slot, set()) for slot in read))
            if one.opcode == "ld":
                came = _loaded_from(one, names)
            for slot in written:
                if not came <= origin.setdefault(slot, set()):
                    origin[slot] |= came
                    changed = True
    stored: set[str] = set()
    for one in function.code:
        if one.opcode in ("st", "atom", "red", "cp"):
            address = next((o for o in one.operands if isinstance(o, Address)), None)
            for register in registers_of(address):
                stored |= origin.get(register.slot, set())
    return None if "*" in stored else frozenset(stored)


def _loaded_from(one: Instruction, names: set[str]) -> set[str]:
    address = one.operands[1]
    if "param" in one.modifiers and isinstance(address, Address) and isinstance(address.base, Symbol):
        return {address.base.name} if address.base.name in names else set()
    # Numbers that are loaded may be pointers only where they are as wide as one.
    return {"*"} if one.type in ("u64", "b64", "s64") else set()
