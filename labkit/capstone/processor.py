"""The processor family that a loss was worked out on: sums of floats may round otherwise on another one."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

_CPUINFO = Path("/proc/cpuinfo")


def processor(cpuinfo: Path = _CPUINFO) -> str:
    """ "GenuineIntel, family 6, model 143, AVX512", or what else the system calls it; with the instructions that
    PyTorch uses."""
    try:
        first = cpuinfo.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        lines = (line.partition(":") for line in first.splitlines())
        fields = {name.strip(): value.strip() for name, _, value in lines}
        family = f"{fields['vendor_id']}, family {fields['cpu family']}, model {fields['model']}"
    except (OSError, KeyError):
        family = platform.processor() or platform.machine() or "an unknown processor"
    return f"{family}, {torch.backends.cpu.get_cpu_capability()}"
