"""NVRTC, NVIDIA's compiler of CUDA C++ to PTX, by its C interface: found where pip installs it, needs no GPU.

It does not look at the source (`sources` does, before) and does not explain the errors (`diagnostics` does, after).
NVRTC is proprietary: it is installed beside the labs (`pip install "efficient-training-labs[cuda]"`), never shipped
with them.
"""

from __future__ import annotations

import ctypes
import importlib.util
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OLDEST = (12, 8)

LIBRARIES = (
    "*/lib/libnvrtc.so.*[0-9]",
    "*/bin/x86_64/nvrtc64_*_0.dll",
    "*/bin/nvrtc64_*_0.dll",
)
"""Where the wheels of CUDA 13 (`nvidia/cu13`) and 12 (`nvidia/cuda_nvrtc`) keep the library."""

Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class NvrtcMissing(ImportError):
    """NVRTC is not installed, or it is older than 12.8."""


@dataclass(frozen=True)
class Compiled:
    """What NVRTC returned. ptx: None where the source did not compile; log: its messages, warnings included."""

    ptx: str | None
    log: str
    timed_out: bool = False


def nvidia_folders() -> Iterator[Path]:
    """The folders that NVIDIA's wheels are installed under."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place)


@cache
def library() -> ctypes.CDLL:
    """The newest NVRTC that is installed. Raises `NvrtcMissing`."""
    found = [path for folder in nvidia_folders() for pattern in LIBRARIES for path in sorted(folder.glob(pattern))]
    loaded = [ctypes.CDLL(str(path)) for path in found]
    newest = max(loaded, key=_version, default=None)
    if newest is None or _version(newest) < OLDEST:
        have = "is not installed" if newest is None else f"{'.'.join(map(str, _version(newest)))} is older than 12.8"
        raise NvrtcMissing(f"NVRTC, the compiler of CUDA C++, {have}: python -m pip install nvidia-cuda-nvrtc")
    newest.nvrtcGetErrorString.restype = ctypes.c_char_p
    return newest


def version() -> tuple[int, int]:
    """The version of NVRTC, such as (13, 5). Raises `NvrtcMissing`."""
    return _version(library())


def _version(loaded: ctypes.CDLL) -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    loaded.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def header_folders() -> list[Path]:
    """The folders of cuda_fp16.h and its like (nvidia-cuda-runtime); empty where they are not installed."""
    places = [place for folder in nvidia_folders() for place in sorted(folder.glob("*/include"))]
    return [place for place in places if (place / "cuda_fp16.h").exists()][:1]


def compile_ptx(source: str, name: str, options: Sequence[str], limit_s: float) -> Compiled:
    """Compile one file of CUDA C++. name: what messages call it. limit_s: then the compiler is told to give up."""
    nvrtc = library()
    program = ctypes.c_void_p()
    _call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
    try:
        deadline = time.monotonic() + limit_s
        stopped = []

        def look_at_the_clock(_payload: object, _unused: object) -> int:
            if time.monotonic() > deadline:
                stopped.append(True)
            return int(bool(stopped))

        give_up = Callback(look_at_the_clock)
        nvrtc.nvrtcSetFlowCallback(program, give_up, None)
        encoded = [option.encode() for option in options]
        result = nvrtc.nvrtcCompileProgram(program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
        log = _text(program, "nvrtcGetProgramLog")
        ptx = None if result else _text(program, "nvrtcGetPTX")
        return Compiled(ptx, log, timed_out=bool(result and stopped))
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def compile_cubin(source: str, name: str, options: Sequence[str]) -> bytes:
    """The machine code of one file for the chip that the options name (`--gpu-architecture=sm_90`)."""
    program = ctypes.c_void_p()
    _call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
    try:
        encoded = [option.encode() for option in options]
        _call("nvrtcCompileProgram", program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
        size = ctypes.c_size_t()
        _call("nvrtcGetCUBINSize", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        _call("nvrtcGetCUBIN", program, buffer)
        return buffer.raw
    finally:
        library().nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, getter: str) -> str:
    size = ctypes.c_size_t()
    _call(f"{getter}Size", program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    _call(getter, program, buffer)
    return buffer.value.decode(errors="replace")


def _call(name: str, *arguments: object) -> None:
    nvrtc = library()
    if result := getattr(nvrtc, name)(*arguments):
        raise RuntimeError(f"{name}: {nvrtc.nvrtcGetErrorString(result).decode()}")
