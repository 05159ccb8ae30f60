"""The report on one compiled kernel: numbers to judge it by, and its assembly to read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from labkit.meters.compiled.sass import disassembled
from labkit.spec import KiB

SHARED_LIMIT_BYTES = {75: 65536, 80: 166912, 86: 101376, 87: 166912, 89: 101376, 90: 232448, 100: 232448, 120: 101376}
"""Shared memory that one block may have, by compute capability (CUDA C++ Programming Guide, table of limits)."""
REGISTER_BYTES = 256 * KiB
"""Of one multiprocessor, for all of its programs together: 64 Ki registers of 4 bytes, from the V100 to the H100."""


@dataclass(frozen=True)
class CompileReport:
    """One kernel, compiled for one GPU with the arguments of one launch.

        CompileReport(
            "add_kernel", arch=90, num_warps=4, num_stages=3, registers=16, spill_store_bytes=0, spill_load_bytes=0,
            shared_bytes=0, loads=Counter({16: 2}), stores=Counter({16: 1}), matrix_instructions=Counter(),
            ptx="...", ttgir="...", cubin=b"...",
        )

    arch: compute capability, 90 for an H100. registers: per thread. loads, stores: how many instructions on global
    memory move so many bytes per thread; 16 is the most that most GPUs can. matrix_instructions: by full name.
    """

    kernel: str
    arch: int
    num_warps: int
    num_stages: int
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int
    loads: Counter[int]
    stores: Counter[int]
    matrix_instructions: Counter[str]
    ptx: str = field(repr=False)
    ttgir: str = field(repr=False)
    cubin: bytes = field(repr=False)

    @property
    def spill_bytes(self) -> int:
        """Registers that did not fit, in bytes of stores and loads per thread; they go through memory."""
        return self.spill_store_bytes + self.spill_load_bytes

    @property
    def load_width_bytes(self) -> int:
        """The widest load; 0 where nothing is loaded."""
        return max(self.loads, default=0)

    @property
    def store_width_bytes(self) -> int:
        """The widest store; 0 where nothing is stored."""
        return max(self.stores, default=0)

    @property
    def fits(self) -> bool:
        """Whether the GPU has as much shared memory as a block asks for; otherwise the launch fails."""
        return self.shared_bytes <= SHARED_LIMIT_BYTES.get(self.arch, self.shared_bytes)

    @property
    def sass(self) -> str:
        """The machine code, disassembled anew at each reading."""
        return disassembled(self.cubin)

    def figures(self) -> dict[str, float]:
        """What a budget can bound: spills (bytes), vector_width (bytes, the lesser of loads and stores), and so on."""
        widths = [width for width in (self.load_width_bytes, self.store_width_bytes) if width]
        return {
            "registers": self.registers,
            "spills": self.spill_bytes,
            "shared_bytes": self.shared_bytes,
            "vector_width": min(widths, default=0),
            "matrix_instructions": self.matrix_instructions.total(),
        }

    def __str__(self) -> str:
        limit = SHARED_LIMIT_BYTES.get(self.arch)
        shared = f"{self.shared_bytes:,} bytes a block" + (f" of at most {limit:,}" if limit else "")
        matrix = ", ".join(f"{count} × {name}" for name, count in sorted(self.matrix_instructions.items()))
        lines = [
            f"{self.kernel} for sm_{self.arch}, {self.num_warps} warps, {self.num_stages} stages",
            f"  registers      {self.registers} a thread",
            f"  spills         {self.spill_store_bytes} bytes stored, {self.spill_load_bytes} loaded",
            f"  shared memory  {shared}" + ("" if self.fits else ": TOO MUCH, the launch would fail"),
            f"  loads          {_widths(self.loads)}",
            f"  stores         {_widths(self.stores)}",
            f"  tensor cores   {matrix or 'not used'}",
        ]
        return "\n".join(lines)


def _widths(counts: Counter[int]) -> str:
    found = (f"{count} × {width} bytes" for width, count in sorted(counts.items(), reverse=True))
    return ", ".join(found) or "none"
