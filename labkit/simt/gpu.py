"""Launch a kernel on an NVIDIA GPU, by the driver's C interface: its PTX is assembled there, and nothing is counted.

The same arguments are checked as on the CPU. `__device__` variables live on the GPU, apart from those of the executor.
What CUDA leaves undefined is undefined here: a fault ends in an error of the driver, or in none.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache, lru_cache

import torch

from labkit.simt import arguments as binding
from labkit.simt.launch import Loaded, check_shape
from labkit.simt.profile import KernelProfile

MAX_DYNAMIC_SHARED_SIZE = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: more than 48 KiB have to be asked for."""
PLAIN_SHARED_BYTES = 48 * 1024


class GpuError(RuntimeError):
    """The driver refused to load or to launch a kernel; the text is its own."""


def device_of(arguments: Sequence[binding.Argument]) -> torch.device:
    """Where the tensors are. Raises TypeError where they are in several places, or neither on the CPU nor on a GPU."""
    found = {argument.device for argument in arguments if isinstance(argument, torch.Tensor)}
    if len(found) > 1:
        raise TypeError(
            f"all tensors of a launch have to be on one device, not on {', '.join(sorted(map(str, found)))}"
        )
    device = found.pop() if found else torch.device("cpu")
    if device.type not in ("cpu", "cuda"):
        raise TypeError(f"kernels run on tensors of the CPU or of an NVIDIA GPU, not on {device}")
    return device


def run(
    kernel: Loaded,
    ptx: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[binding.Argument],
    shared_bytes: int,
) -> KernelProfile:
    """Launch on PyTorch's current stream and wait. Raises `GpuError`, and what PyTorch raises of a fault."""
    device = device_of(arguments)
    whole_grid, whole_block = check_shape(kernel, grid, block)
    with torch.cuda.device(device):
        stream = torch.cuda.current_stream()
        function = _function(ptx, kernel.entry, torch.cuda.current_device())
        if shared_bytes > PLAIN_SHARED_BYTES:
            _call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_SIZE, shared_bytes)
        values = [ctypes.create_string_buffer(one, len(one)) for one in parameter_bytes(kernel, arguments)]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(one) for one in values))
        handle = ctypes.c_void_p(stream.cuda_stream)
        _call("cuLaunchKernel", function, *whole_grid, *whole_block, shared_bytes, handle, pointers, None)
        stream.synchronize()
    return KernelProfile(kernel.name, whole_grid, whole_block, kernel.source, {}, device=str(device))


def parameter_bytes(kernel: Loaded, arguments: Sequence[binding.Argument]) -> list[bytes]:
    """The bytes of each parameter, tensors by their address. Raises TypeError and ValueError, as on the CPU."""
    parameters = kernel.plans[kernel.entry].function.parameters
    found = binding.bind(parameters, kernel.parameters, arguments, _Addresses())
    return [found[one.name] for one in parameters]


class _Addresses:
    """Tensors where they are, in place of the executor's own memory."""

    def add_tensor(self, name: str, tensor: torch.Tensor) -> int:
        return tensor.data_ptr()


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@lru_cache(maxsize=64)
def _function(ptx: str, entry: str, device: int) -> ctypes.c_void_p:
    """The kernel, assembled for the current device. device: its number, for what is remembered."""
    torch.cuda.synchronize(device)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuModuleLoadData", ctypes.byref(module), ptx.encode() + b"\0")
    _call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
    return function


def _call(name: str, *arguments: object) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(text))
        raise GpuError(f"{name}: {(text.value or b'unknown error').decode()} (code {code})")
