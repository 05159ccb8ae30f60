"""Read PTX and the assembler's log: how wide memory accesses are, which matrix instructions, registers and spills.

Text in, numbers out; nothing is compiled here.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field

from labkit.meters.launches_work import Place, Site

_ACCESS = re.compile(r"\b(ld|st)(?:\.\w+)*?\.global(?:[\w.:]*?)(?:\.v([248]))?\.[busf](\d+)\b")
_ASYNC_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global(?:[\w.:]*)\s*\[[^\]]*\]\s*,\s*\[[^\]]*\]\s*,\s*(\w+)")
_BULK_COPY = re.compile(r"\bcp\.async\.bulk\.tensor\b[\w.:]*")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_PLACE = re.compile(r"^\s*\.loc\s+(\d+) (\d+) (\d+)(?:.*?\binlined_at (\d+) (\d+) (\d+))?")
_MATRIX = re.compile(r"\b(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)[\w.:]*")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")

WIDEST_BYTES = 16
"""What one thread can move at once, on the GPUs of the course."""


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


@dataclass
class Placed:
    """What compiled code has from one site of the source; loads, stores: as `accesses` counts them."""

    loads: Counter[int] = field(default_factory=Counter)
    stores: Counter[int] = field(default_factory=Counter)
    n_matrix_instructions: int = 0


def placed(ptx: str) -> dict[Site, Placed]:
    """The instructions on global memory and on matrices, by the place that each is from; columns count from 1.

    A bulk copy of the tensor memory accelerator counts as the widest access that a thread can make.
    """
    files = {number: os.path.basename(name) for number, name in _FILE.findall(ptx)}
    found: dict[Site, Placed] = {}
    site = stated = (("", 0, 0), None)
    in_assembly = is_located = False
    for line in ptx.splitlines():
        if "// begin inline asm" in line:
            site, in_assembly, is_located = stated, True, False
        elif "// end inline asm" in line:
            in_assembly = False
        elif at := _PLACE.match(line):
            here, above = at.groups()[:3], at.groups()[3:]
            stated = (_place(files, *here), _place(files, *above) if above[0] else None)
            # Each further line of a piece of assembly is stated to be from a further line of the source.
            if not (in_assembly and is_located):
                site, is_located = stated, True
        elif "global" in line or "mma" in line:
            _count(line, found.setdefault(site, Placed()))
    return {site: one for site, one in found.items() if one.loads or one.stores or one.n_matrix_instructions}


def _count(line: str, placed: Placed) -> None:
    loads, stores = accesses(line)
    if copied := _BULK_COPY.search(line):
        side = loads if ".shared::cluster.global" in copied[0] else stores
        side[WIDEST_BYTES] += 1
    placed.loads.update(loads)
    placed.stores.update(stores)
    placed.n_matrix_instructions += matrix_instructions(line).total()


def _place(files: dict[str, str], file: str, line: str, column: str) -> Place:
    return (files.get(file, ""), int(line), int(column))


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
