"""What a launch cost, by source line: the counters of a profiler, with their definitions.

Names follow Nsight Compute where it has one. Everything is counted for the PTX that NVRTC made, before the assembler
has turned it into machine code: memory accesses, FLOPs, barriers and divergence are the same there; the number of
instructions is close, not equal. Nothing here is a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from labkit.simt.faults import Dim3, Fault
from labkit.simt.watching import WarpAccess


def _total(name: str, definition: str) -> property:
    """A counter, summed over all lines."""
    return property(lambda profile: profile.total(name), doc=definition)


@dataclass(frozen=True)
class KernelProfile:
    """Counters of one launch. by_line: source line -> counter -> value; line 0: what no line of the source made.

    accesses: of the warp that the launch was asked to watch.
    device: "cpu" where the launch was executed here; on a GPU nothing is counted, and asking raises an error.
    """

    name: str
    grid: Dim3
    block: Dim3
    source: str = field(repr=False)
    by_line: Mapping[int, Mapping[str, int]] = field(repr=False)
    faults: tuple[Fault, ...] = ()
    device: str = "cpu"
    accesses: tuple[WarpAccess, ...] = field(default=(), repr=False)

    def total(self, counter: str) -> int:
        """The sum of a counter over all lines."""
        if self.device != "cpu":
            raise RuntimeError(f"{counter} is counted on the CPU only; this launch ran on {self.device}")
        return sum(counts.get(counter, 0) for counts in self.by_line.values())

    def line(self, number: int) -> Mapping[str, int]:
        """The counters of one source line; counters that are zero may be missing."""
        return self.by_line.get(number, {})

    warp_instructions = _total(
        "warp_instructions", "Instructions, one for each warp that executes them (smsp__inst_executed)."
    )
    thread_instructions = _total(
        "thread_instructions",
        "Instructions times the lanes that execute them, predicated off or not (smsp__thread_inst_executed).",
    )
    predicated_off_lanes = _total(
        "predicated_off_lanes",
        "Lanes that execute an instruction whose guard is false for them (…_pred_on is the rest).",
    )
    divergent_branches = _total(
        "divergent_branches", "Warps whose lanes part at a branch (smsp__sass_branch_targets_threads_divergent)."
    )
    flops = _total(
        "flops",
        "FLOPs: 1 for each add, sub, mul, 2 for each fma, of a lane (smsp__sass_thread_inst_executed_op_fadd, _fmul, "
        "_ffma and their like for half and double), twice that for packed pairs; an m16n8k16 of tensor cores is 4,096.",
    )
    global_load_requests = _total(
        "global_load_requests", "Loads of global memory, one a warp (l1tex__t_requests…op_ld)."
    )
    global_load_sectors = _total(
        "global_load_sectors", "32-byte sectors that these requests touch (l1tex__t_sectors_pipe_lsu_mem_global_op_ld)."
    )
    global_load_bytes = _total(
        "global_load_bytes", "Bytes that the lanes ask for (smsp__sass_…_bytes_mem_global_op_ld)."
    )
    global_store_requests = _total("global_store_requests", "Stores to global memory, one a warp.")
    global_store_sectors = _total("global_store_sectors", "32-byte sectors that the stores touch.")
    global_store_bytes = _total("global_store_bytes", "Bytes that the lanes store.")
    global_atomic_requests = _total("global_atomic_requests", "Atomic operations on global memory, one a warp.")
    global_atomic_lanes = _total("global_atomic_lanes", "Lanes of these.")
    global_atomic_sectors = _total("global_atomic_sectors", "32-byte sectors that they touch.")
    shared_atomic_requests = _total("shared_atomic_requests", "Atomic operations on shared memory, one a warp.")
    shared_atomic_lanes = _total("shared_atomic_lanes", "Lanes of these.")
    atomic_conflicts = _total(
        "atomic_conflicts",
        "Lanes of atomic operations beyond the first at each address of their warp: they take turns.",
    )
    shared_load_requests = _total("shared_load_requests", "Loads of shared memory, one a warp.")
    shared_load_wavefronts = _total(
        "shared_load_wavefronts",
        "Passes that these loads take (l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld): a pass serves one 4-byte "
        "word of each of 32 banks. CUDA C++ Programming Guide, Shared Memory.",
    )
    shared_store_requests = _total("shared_store_requests", "Stores to shared memory, one a warp.")
    shared_store_wavefronts = _total("shared_store_wavefronts", "Passes that these stores take.")
    bank_conflicts = _total(
        "bank_conflicts",
        "Passes of shared memory that loads and stores take beyond one for each group of lanes that is served at once "
        "(l1tex__data_bank_conflicts_pipe_lsu_mem_shared).",
    )
    local_load_requests = _total("local_load_requests", "Loads of local memory (arrays of a thread), one a warp.")
    local_store_requests = _total("local_store_requests", "Stores to local memory, one a warp.")
    constant_load_requests = _total("constant_load_requests", "Loads of constant memory, one a warp.")
    barriers = _total("barriers", "Barriers of a block, one for each warp that arrives (CTA barrier instructions).")
    mma_instructions = _total("mma_instructions", "Matrix products on tensor cores, one a warp.")

    @property
    def shared_requests(self) -> int:
        """Loads of and stores to shared memory, one a warp."""
        return self.shared_load_requests + self.shared_store_requests

    @property
    def shared_wavefronts(self) -> int:
        """Passes of shared memory that loads and stores take; `bank_conflicts` of them are avoidable."""
        return self.shared_load_wavefronts + self.shared_store_wavefronts

    @property
    def global_sectors(self) -> int:
        """32-byte sectors of global loads and stores."""
        return self.global_load_sectors + self.global_store_sectors

    @property
    def global_requests(self) -> int:
        """Loads of and stores to global memory, one a warp."""
        return self.global_load_requests + self.global_store_requests

    @property
    def local_requests(self) -> int:
        """Loads of and stores to local memory, one a warp: of arrays that are indexed at run time."""
        return self.local_load_requests + self.local_store_requests

    @property
    def atomic_lanes(self) -> int:
        """Lanes of atomic operations, on global and on shared memory."""
        return self.global_atomic_lanes + self.shared_atomic_lanes

    @property
    def inactive_lanes(self) -> int:
        """Places in warps that did nothing because their lanes were elsewhere, or do not exist: 32 a warp
        instruction, less `thread_instructions`."""
        return 32 * self.warp_instructions - self.thread_instructions

    def counters(self) -> dict[str, int]:
        """All counters that are not zero, summed over lines."""
        names = sorted({name for counts in self.by_line.values() for name in counts})
        return {name: value for name in names if (value := self.total(name))}

    def text_of(self, line: int) -> str:
        """A line of the source, without the blanks around it; "" where there is none."""
        rows = self.source.splitlines()
        return rows[line - 1].strip() if 1 <= line <= len(rows) else ""

    def table(self) -> str:
        """The source with the main counters of each line, as text."""
        columns = ("warp_instructions", "global_sectors", "shared_wavefronts", "divergent_branches")
        rows = [f"{'line':>4} {'warp instr.':>12} {'sectors':>10} {'wavefronts':>10} {'divergent':>9}  source"]
        for number, text in enumerate(self.source.splitlines(), 1):
            counts = dict(self.line(number))
            counts["global_sectors"] = counts.get("global_load_sectors", 0) + counts.get("global_store_sectors", 0)
            counts["shared_wavefronts"] = counts.get("shared_load_wavefronts", 0) + counts.get(
                "shared_store_wavefronts", 0
            )
            shown = [f"{counts[name]:,}" if counts.get(name) else "" for name in columns]
            rows.append("{:>4} {:>12} {:>10} {:>10} {:>9}  {}".format(number, *shown, text.rstrip()).rstrip())
        return "\n".join(rows)
