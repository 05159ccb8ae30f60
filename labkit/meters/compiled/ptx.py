"""Read PTX and the assembler's log: how wide memory accesses are, which matrix instructions, registers and spills.

Text in, numbers out; nothing is compiled here.
"""

from __future__ import annotations

import re
from collections import Counter

_ACCESS = re.compile(r"\b(ld|st)(?:\.\w+)*?\.global(?:[\w.:]*?)(?:\.v([248]))?\.[busf](\d+)\b")
_ASYNC_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global(?:[\w.:]*)\s*\[[^\]]*\]\s*,\s*\[[^\]]*\]\s*,\s*(\w+)")
_MATRIX = re.compile(r"\b(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)[\w.:]*")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def accesses(ptx: str) -> tuple[Counter[int], Counter[int]]:
    """Instructions that load from global memory, and that store there, by the bytes that one thread moves with each.

    Asynchronous copies to shared memory count as loads; the tensor memory accelerator's bulk copies do not.
    """
    found = {"ld": Counter(), "st": Counter()}
    for kind, lanes, bits in _ACCESS.findall(ptx):
        found[kind][int(lanes or 1) * int(bits) // 8] += 1
    for n_bytes in _ASYNC_COPY.findall(ptx):
        found["ld"][int(n_bytes, 0)] += 1
    return found["ld"], found["st"]


def matrix_instructions(ptx: str) -> Counter[str]:
    """Matrix instructions by their full name, as often as they stand in the text."""
    return Counter(_MATRIX.findall(ptx))


def resources(log: str) -> tuple[int, int, int]:
    """Registers per thread, bytes of spill stores and of spill loads, from `ptxas -v`; of the largest function.

    Raises ValueError for a log that has none of these lines.
    """
    registers = [int(number) for number in _REGISTERS.findall(log)]
    spills = [(int(stores), int(loads)) for _, stores, loads in _SPILLS.findall(log)]
    if not registers or not spills:
        raise ValueError(f"the assembler's log names no registers or spills: {log[:500]!r}")
    return max(registers), max(stores for stores, _ in spills), max(loads for _, loads in spills)
