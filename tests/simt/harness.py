"""What the tests of labkit.simt share: compile once a source, launch, and expect a fault."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import pytest
import torch

from labkit.simt import Fault, KernelProfile, Kernels, LaunchFault, NvrtcMissing, compile_cuda, nvrtc
from tests.lanes import missing


def require_nvrtc() -> None:
    """Skip where NVRTC cannot be installed; elsewhere its absence is a mistake of the environment."""
    try:
        nvrtc.library()
    except NvrtcMissing:
        if platform.system() == "Darwin":
            pytest.skip("NVIDIA has no NVRTC for macOS")
        missing("NVRTC", "kernels of CUDA C++ are not compiled", 'python -m pip install -e ".[cuda]"')


def source(name: str) -> str:
    """The kernels of tests/simt/kernels/NAME.cu."""
    return (Path(__file__).parent / "kernels" / f"{name}.cu").read_text(encoding="utf-8")


@cache
def compiled(source: str, *options: str) -> Kernels:
    """The kernels of a source."""
    require_nvrtc()
    return compile_cuda(source, options=options)


def launch(source: str, name: str, grid, block, *arguments, **more) -> KernelProfile:
    """Launch a kernel that does nothing wrong."""
    return compiled(source)[name].launch(grid, block, *arguments, **more)


def faults(source: str, name: str, grid, block, *arguments, **more) -> list[Fault]:
    """The faults of a kernel that does something wrong, as the exception carries them."""
    with pytest.raises(LaunchFault) as caught:
        compiled(source)[name].launch(grid, block, *arguments, **more)
    return list(caught.value.faults)


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Normal numbers from a fixed seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def integers(*shape: int, low: int = -(2**31), high: int = 2**31, dtype=torch.int32, seed: int = 0) -> torch.Tensor:
    """Uniform integers from a fixed seed."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.int64).to(dtype)
