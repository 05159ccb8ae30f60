"""NVRTC, NVIDIA's compiler of CUDA C++ to PTX, by its C interface: found where pip installs it, needs no GPU.

It does not look at the source (`sources` does, before), does not explain the errors (`diagnostics` does, after), and
has no limits of its own: `compiler_process` compiles in a process that has, for which `answer_to` is meant, and this
file can be run as a program. So it imports nothing but the standard library.
NVRTC is proprietary: it is installed beside the labs (`pip install "efficient-training-labs[cuda]"`), never shipped
with them.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

OUT_OF_MEMORY = 1
"""NVRTC_ERROR_OUT_OF_MEMORY."""


class NvrtcMissing(ImportError):
    """NVRTC is not installed, or it is older than 12.8."""


@dataclass(frozen=True)
class Compiled:
    """What NVRTC returned. code: PTX or a cubin, None where the source did not compile; log: its messages, warnings
    included.
    """

    code: bytes | None
    log: str


def nvidia_folders() -> Iterator[Path]:
    """The folders that NVIDIA's wheels are installed under."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place)


@cache
def library() -> ctypes.CDLL:
    """The newest NVRTC that is installed. Raises `NvrtcMissing`."""
    found = [path for folder in nvidia_folders() for pattern in LIBRARIES for path in sorted(folder.glob(pattern))]
    loaded = [_loaded(path) for path in found]
    newest = max(loaded, key=_version, default=None)
    if newest is None or _version(newest) < OLDEST:
        have = "is not installed" if newest is None else f"{'.'.join(map(str, _version(newest)))} is older than 12.8"
        raise NvrtcMissing(f"NVRTC, the compiler of CUDA C++, {have}: python -m pip install nvidia-cuda-nvrtc")
    newest.nvrtcGetErrorString.restype = ctypes.c_char_p
    return newest


def _loaded(path: Path) -> ctypes.CDLL:
    """The library, behind the one that it asks for by name alone: that of CUDA 13.0 does not look in its own folder."""
    for builtins in sorted(path.parent.glob("libnvrtc-builtins.so.*[0-9]")):
        ctypes.CDLL(str(builtins))
    return ctypes.CDLL(str(path))


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


def compile_source(
    source: str, name: str, options: Sequence[str], cubin: bool = False, headers: Mapping[str, str] | None = None
) -> Compiled:
    """Compile one file of CUDA C++ in this process, however long that takes. name: what messages call it.

    cubin: machine code for the chip that the options name (`--gpu-architecture=sm_90`), in place of PTX. headers: texts
    that an include finds by their names, before files.
    """
    nvrtc = library()
    program = ctypes.c_void_p()
    names, texts = (_strings(one) for one in ((headers or {}).keys(), (headers or {}).values()))
    given = ctypes.byref(program), source.encode(), name.encode(), len(names), texts, names
    _call("nvrtcCreateProgram", *given)
    try:
        result = nvrtc.nvrtcCompileProgram(program, len(options), _strings(options))
        log = _bytes(program, "nvrtcGetProgramLog").rstrip(b"\0").decode(errors="replace")
        if result == OUT_OF_MEMORY:
            raise MemoryError("the compiler ran out of memory")
        if result:
            return Compiled(None, log)
        return Compiled(_bytes(program, "nvrtcGetCUBIN") if cubin else _bytes(program, "nvrtcGetPTX"), log)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _strings(texts: Iterable[str]) -> ctypes.Array[ctypes.c_char_p]:
    encoded = [text.encode() for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def _bytes(program: ctypes.c_void_p, getter: str) -> bytes:
    size = ctypes.c_size_t()
    _call(f"{getter}Size", program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    _call(getter, program, buffer)
    return buffer.raw[: size.value]


def _call(name: str, *arguments: object) -> None:
    nvrtc = library()
    if result := getattr(nvrtc, name)(*arguments):
        raise RuntimeError(f"{name}: {nvrtc.nvrtcGetErrorString(result).decode()}")


def answer_to(request: bytes) -> bytes:
    """Compile under limits, which this process keeps for good: a line of JSON [kind, log], and the code.

    request: the arguments of `compile_source` as a JSON list, then the limits in seconds of CPU time and bytes. kind:
    "code" or "failed", or "memory" where the limit was reached.
    """
    *arguments, cpu_limit_s, limit_bytes = json.loads(request)
    library()
    with contextlib.suppress(ImportError):
        _limit(cpu_limit_s, limit_bytes)
    try:
        found = compile_source(*arguments)
    except MemoryError:
        return json.dumps(["memory", ""]).encode()
    head = json.dumps(["failed" if found.code is None else "code", found.log]).encode()
    return head + b"\n" + (found.code or b"")


def _limit(cpu_limit_s: float, limit_bytes: int) -> None:
    """Hold this process to so much more memory and CPU time, and to writing no file. ImportError on Windows."""
    import resource

    with open("/proc/self/statm") as file:
        held_bytes = int(file.read().split()[5]) * resource.getpagesize()
    used_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    wanted = {
        resource.RLIMIT_DATA: held_bytes + limit_bytes,
        resource.RLIMIT_CPU: int(used_s + cpu_limit_s) + 1,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for what, limit in wanted.items():
        most = resource.getrlimit(what)[1]
        most = most if most != resource.RLIM_INFINITY else 1 << 62
        # At the soft limit of time comes SIGXCPU, by which this end is told from others.
        hard = limit + 1 if what == resource.RLIMIT_CPU else limit
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (min(limit, most), min(hard, most)))


if __name__ == "__main__":
    sys.stdout.buffer.write(answer_to(sys.stdin.buffer.read()))
