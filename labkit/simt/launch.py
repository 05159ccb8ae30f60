"""One launch: check its shape, lay out memory, run chunk after chunk of its blocks, collect counts and faults.

Chunks keep memory small and arrays in the cache. Blocks of one chunk run side by side, chunks one after the other: a
block that waits for one of a later chunk waits for ever, which the limit on work turns into a fault. (A GPU gives no
guarantee there either.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labkit.simt import arguments as binding
from labkit.simt.calls import MAX_LOCAL_BYTES
from labkit.simt.faults import FaultLog, Stop
from labkit.simt.lanes import Dim3, Lanes
from labkit.simt.machine import Machine
from labkit.simt.memory import Memory
from labkit.simt.plan import Plan
from labkit.simt.profile import KernelProfile
from labkit.simt.program import Module, Variable
from labkit.simt.signature import CParameter, plain_name
from labkit.simt.values import Unsupported
from labkit.simt.watching import Watch
from labkit.simt.work import spread

MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
MAX_THREADS = 1 << 26
MAX_SHARED_BYTES = 163 * 1024
CHUNK_LANES = 1 << 15
CHUNK_BYTES = 1 << 28
MAX_WORK = 1 << 33
"""Instructions × threads of one launch, more or less: ten to twenty seconds of them."""


@dataclass(frozen=True)
class Loaded:
    """A kernel ready to launch. plans: of the kernel and all functions that it may call."""

    name: str
    entry: str
    plans: Mapping[str, Plan]
    module: Module
    parameters: tuple[CParameter, ...]
    source: str


def shape_of(value: int | Sequence[int], what: str, limits: Dim3) -> Dim3:
    """A grid or block as three numbers. Raises ValueError."""
    sizes = (value,) if isinstance(value, int) else tuple(int(one) for one in value)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{what} = {value} must have one, two or three numbers")
    whole = (*sizes, 1, 1)[:3]
    if any(not 1 <= size <= limit for size, limit in zip(whole, limits, strict=True)):
        raise ValueError(f"{what} = {value} is not between (1, 1, 1) and {limits}")
    return whole[0], whole[1], whole[2]


def check_shape(kernel: Loaded, grid: int | Sequence[int], block: int | Sequence[int]) -> tuple[Dim3, Dim3]:
    """(grid, block). Raises ValueError where a GPU would refuse the launch, or this executor does."""
    whole_grid, whole_block = shape_of(grid, "grid", MAX_GRID), shape_of(block, "block", MAX_BLOCK)
    threads = whole_block[0] * whole_block[1] * whole_block[2]
    most = kernel.plans[kernel.entry].function.max_threads or MAX_THREADS_PER_BLOCK
    if threads > min(most, MAX_THREADS_PER_BLOCK):
        raise ValueError(
            f"block = {block} has {threads:,} threads; at most {min(most, MAX_THREADS_PER_BLOCK):,} are allowed"
        )
    return whole_grid, whole_block


def shared_layout(
    kernel: Loaded, dynamic_bytes: int, granule: int
) -> tuple[dict[str, int], list[tuple[str, int, int]], int]:
    """Offsets of the shared variables, (name, offset, bytes of an element) for messages, and how many bytes in all."""
    variables: list[Variable] = [one for one in kernel.module.variables.values() if one.space == "shared"]
    for plan in kernel.plans.values():
        variables += [one for one in plan.function.variables if one.space == "shared"]
    offsets, names, total = {}, [], 0
    for one in sorted(variables, key=lambda variable: variable.size == 0):
        total = -(-total // max(one.align, 1)) * max(one.align, 1)
        offsets[one.name] = total
        names.append((plain_name(one.name), total, max(one.word_bytes, granule)))
        total += one.size
    total += dynamic_bytes
    if total > MAX_SHARED_BYTES:
        raise ValueError(f"the kernel wants {total:,} bytes of shared memory; a block has at most {MAX_SHARED_BYTES:,}")
    return offsets, names, total


def smallest_shared_access(plans: Mapping[str, Plan]) -> int:
    """Bytes of the smallest access that may be to shared memory."""
    sizes = [16]
    for plan in plans.values():
        for one in plan.function.code:
            if one.opcode in ("ld", "st", "atom", "red") and not {"global", "param", "local", "const"} & set(
                one.modifiers
            ):
                digits = "".join(c for c in one.type if c.isdigit())
                sizes.append(4 if one.type.endswith("x2") else max(int(digits or 8) // 8, 1))
            elif one.opcode in ("cp", "ldmatrix"):
                sizes.append(4)
    return min(sizes)


def run(
    kernel: Loaded,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[binding.Argument],
    memory: Memory,
    symbols: Mapping[str, int],
    shared_bytes: int,
    max_work: int,
    watch: Watch | None = None,
) -> KernelProfile:
    """Execute a launch on the CPU. memory: with the module's variables; the tensors are added."""
    whole_grid, whole_block = check_shape(kernel, grid, block)
    n_blocks = whole_grid[0] * whole_grid[1] * whole_grid[2]
    n_threads = whole_block[0] * whole_block[1] * whole_block[2]
    if n_blocks * n_threads > MAX_THREADS:
        raise ValueError(
            f"grid × block has {n_blocks * n_threads:,} threads; at most {MAX_THREADS:,} are executed here"
        )
    entry = kernel.plans[kernel.entry]
    own_variables = frozenset(region.name for region in memory.regions)
    parameters = binding.bind(entry.function.parameters, kernel.parameters, arguments, memory)
    names = binding.names_of(entry.function.parameters, kernel.parameters)
    stored = frozenset(
        name
        for one, name in zip(entry.function.parameters, names, strict=True)
        if entry.stored is None or one.name in entry.stored
    )
    granule = smallest_shared_access(kernel.plans)
    offsets, shared_names, total_shared = shared_layout(kernel, shared_bytes, granule)
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    faults = FaultLog()
    published: dict[int, int] = {}
    acquired: dict[int, int] = {}
    work = n_printed = 0
    registers = sum(len(plan.function.registers) for plan in kernel.plans.values())
    per_lane = 4 * registers + 2 * sum(plan.local_bytes for plan in kernel.plans.values())
    lanes_at_once = min(CHUNK_LANES, CHUNK_BYTES // max(per_lane, 1))
    padded = -(-n_threads // 32) * 32
    if entry.local_bytes * padded > MAX_LOCAL_BYTES:
        raise ValueError(
            f"{kernel.name} keeps {entry.local_bytes:,} bytes of arrays for each of a block's {n_threads:,} threads: "
            f"more than {MAX_LOCAL_BYTES >> 20} MiB a block are not executed"
        )
    blocks_at_once = max(1, min(lanes_at_once // padded, CHUNK_BYTES // max(16 * total_shared, 1)))
    for first in range(0, n_blocks, blocks_at_once):
        lanes = Lanes(whole_grid, whole_block, first, min(blocks_at_once, n_blocks - first))
        machine = Machine(
            kernel.plans,
            kernel.entry,
            lanes,
            memory,
            {**symbols, **offsets},
            parameters,
            total_shared,
            granule,
            counts,
            faults,
            max_work,
            work,
            n_blocks > 1,
            shared_names,
            stored | own_variables,
            published,
            acquired,
        )
        machine.watch, machine.n_printed = watch, n_printed
        try:
            machine.run()
        except Stop:
            break
        finally:
            spread(machine, counts)
        n_printed = machine.n_printed
        work = machine.work
    by_line = {line: dict(found) for line, found in sorted(counts.items())}
    accesses = tuple(watch.accesses) if watch else ()
    return KernelProfile(kernel.name, whole_grid, whole_block, kernel.source, by_line, faults.all(), accesses=accesses)


def reachable(module: Module, entry: str) -> list[str]:
    """The functions that a kernel may call, itself first. Raises `Unsupported` for a call by pointer."""
    found, todo = [], [entry]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.append(name)
        for one in module.functions[name].code:
            if one.opcode != "call":
                continue
            callee = next((operand for operand in one.operands if hasattr(operand, "name")), None)
            target = getattr(callee, "name", "")
            if target in module.functions:
                todo.append(target)
            elif target not in ("vprintf", "__assertfail"):
                raise Unsupported(f"line {one.line}: the call of {target} is not executed")
    return found
