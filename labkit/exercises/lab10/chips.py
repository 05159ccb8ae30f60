"""What limits the threads on a streaming multiprocessor (SM), and what its memory delivers: chips from sm_80 to sm_120.

The limits are NVIDIA's (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"), bandwidths are
from the chips' data sheets. The latency of memory is an assumption, the same for all: an idle memory answers in about
half of that, and a busy one takes longer.
"""

from __future__ import annotations

from dataclasses import dataclass

LATENCY_S = 600e-9


@dataclass(frozen=True)
class Chip:
    """A GPU. max_warps, max_blocks, registers (of 32 bits), shared_bytes: what one SM has room for.

    Chip("A100", 80, n_sms=108, max_warps=64, max_blocks=32, shared_bytes=164 * 1024, bytes_per_s=2.039e12)
    """

    name: str
    arch: int
    n_sms: int
    max_warps: int
    max_blocks: int
    shared_bytes: int
    bytes_per_s: float
    latency_s: float = LATENCY_S
    registers: int = 65536

    def __repr__(self) -> str:
        return self.name.replace(" ", "_").upper()


A100 = Chip("A100", 80, 108, 64, 32, 164 * 1024, 2.039e12)
RTX_3090 = Chip("RTX 3090", 86, 82, 48, 16, 100 * 1024, 0.936e12)
RTX_4090 = Chip("RTX 4090", 89, 128, 48, 24, 100 * 1024, 1.008e12)
H100 = Chip("H100", 90, 132, 64, 32, 228 * 1024, 3.35e12)
B200 = Chip("B200", 100, 148, 64, 32, 228 * 1024, 8.0e12)
RTX_5090 = Chip("RTX 5090", 120, 170, 48, 24, 100 * 1024, 1.792e12)
CHIPS = {repr(chip): chip for chip in (A100, RTX_3090, RTX_4090, H100, B200, RTX_5090)}
