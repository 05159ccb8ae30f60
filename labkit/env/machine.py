"""The machine and its Python: versions, cores, memory, disk, the folder, the kernel, a C++ compiler.

Figures that change from minute to minute (free memory, free disk) are given as the threshold they pass.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from labkit.env.finding import EnvFinding
from labkit.spec import GiB

GB = 10**9
OLDEST_PYTHON = (3, 11)
UNTESTED_PYTHON = (3, 14)
COMPILER_FIX = "sudo apt install g++ (Debian, Ubuntu); sudo dnf install gcc-c++ (Fedora)"


def python() -> EnvFinding:
    """The version, and whether the labs are tested on it."""
    version = sys.version_info[:2]
    if version < OLDEST_PYTHON:
        fix = "install Python 3.12 and set the labs up with it: make setup PYTHON=python3.12"
        return EnvFinding("Python", "red", f"{platform.python_version()}: the labs need 3.11 or newer", fix)
    if version >= UNTESTED_PYTHON:
        return EnvFinding("Python", "note", f"{platform.python_version()}: the labs are tested on 3.11 to 3.13")
    return EnvFinding("Python", "ok", platform.python_version())


def kernel() -> EnvFinding:
    """Which Python runs this, and whether it is the one of the environment that is active."""
    active = os.environ.get("VIRTUAL_ENV")
    if active and Path(active).exists() and not Path(active).samefile(sys.prefix):
        fix = 'choose the environment\'s own kernel (menu "Kernel"), or start JupyterLab with python -m jupyterlab'
        return EnvFinding("Running in", "note", f"{sys.executable}, while {active} is active", fix)
    return EnvFinding("Running in", "ok", sys.executable or "an embedded Python")


def operating_system() -> EnvFinding:
    """The name of the system, its version and the processor's architecture."""
    system, machine = platform.system(), platform.machine()
    if system == "Linux":
        try:
            name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
        except OSError:
            name = "Linux"
    elif system == "Darwin":
        name = f"macOS {platform.mac_ver()[0]}"
    else:
        name = f"{system} {platform.release()}"
    return EnvFinding("Operating system", "ok", f"{name}, {machine}")


def cpu_cores() -> EnvFinding:
    """The cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    n_cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return EnvFinding("CPU cores", "ok", str(n_cores))


def memory() -> EnvFinding:
    """All of the memory, not what is free of it at the moment."""
    total_bytes = memory_bytes()
    value = f"{total_bytes / GiB:.1f} GiB"
    if total_bytes < 2 * GiB:
        fix = "use a machine with 4 GiB or more; most clusters have one"
        return EnvFinding("Memory", "red", f"{value}: the labs need 2 GiB", fix)
    if total_bytes < 3.5 * GiB:
        return EnvFinding("Memory", "note", f"{value}: enough if you close other programs")
    return EnvFinding("Memory", "ok", value)


def memory_bytes() -> int:
    """The machine's memory in bytes, or the container's where that is less."""
    if platform.system() == "Windows":
        total_bytes = _windows_memory_bytes()
    else:
        total_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total_bytes = min(total_bytes, int(Path(name).read_text()))
        except (OSError, ValueError):
            continue
    return total_bytes


def _windows_memory_bytes() -> int:
    import ctypes

    class Status(ctypes.Structure):
        """MEMORYSTATUSEX of the Windows API."""

        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong)
            for name in ("total", "free", "total_page", "free_page", "total_virtual", "free_virtual", "extended")
        ]

    status = Status(length=ctypes.sizeof(Status))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return status.total


def disk() -> EnvFinding:
    """Room where the notebook lies, as a threshold."""
    free_bytes = shutil.disk_usage(Path.cwd()).free
    fix = "delete what you no longer need; python -m pip cache purge often frees some GB"
    if free_bytes < GB:
        return EnvFinding("Disk", "red", "less than 1 GB free", fix)
    if free_bytes < 5 * GB:
        return EnvFinding("Disk", "note", "less than 5 GB free", fix)
    return EnvFinding("Disk", "ok", "more than 5 GB free")


def folder() -> EnvFinding:
    """Whether the notebook can be saved where it lies."""
    here = Path.cwd()
    try:
        with tempfile.TemporaryFile(dir=here):
            pass
    except OSError:
        fix = "copy the labs to a folder of your own and open them there: make lab does it"
        return EnvFinding("Working folder", "red", f"{here}: cannot be written to", fix)
    return EnvFinding("Working folder", "ok", f"{here}")


def compiler() -> EnvFinding:
    """A C++ compiler by one of its usual names; it is not started. Without a GPU nothing needs one."""
    path = next((path for name in ("c++", "g++", "clang++", "cl") if (path := shutil.which(name))), None)
    if path is None and platform.system() == "Linux" and shutil.which("nvidia-smi"):
        value = "none; Triton needs one to start kernels on the GPU (labs 12 and 13)"
        return EnvFinding("C++ compiler", "note", value, COMPILER_FIX)
    if path is None:
        return EnvFinding("C++ compiler", "ok", "none, and no lab needs one on this machine")
    return EnvFinding("C++ compiler", "ok", path)


PROBES = (python, kernel, operating_system, cpu_cores, memory, disk, folder, compiler)
"""The probes of this module, in the order of the page."""
