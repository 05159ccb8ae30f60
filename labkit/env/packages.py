"""The Python packages that the labs use, and the GPU as PyTorch sees it.

Versions are read from the installed packages' metadata: importing them all would take many seconds.
"""

from __future__ import annotations

import platform
import re
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from labkit.env.finding import EnvFinding, Probe
from labkit.spec import GiB

OLDEST_TORCH = (2, 11)


@dataclass(frozen=True)
class Package:
    """A package by its name on PyPI and what is lost without it; `required` makes its absence red."""

    name: str
    use: str
    required: bool = False


PACKAGES = (
    Package("matplotlib", "every figure needs it", required=True),
    Package("jupyterlab", "needed unless you open the notebooks in another program"),
    Package("nbgrader", "needed for the Validate button"),
    Package("ipywidgets", "needed for figures with a slider"),
    Package("transformers", "needed by later labs, with real models"),
    Package("peft", "needed by the lab on LoRA"),
)


def probe_of(package: Package) -> Probe:
    """The probe that looks for this package."""

    def probe() -> EnvFinding:
        found = installed(package.name)
        if found:
            return EnvFinding(package.name, "ok", found)
        state = "red" if package.required else "note"
        return EnvFinding(package.name, state, f"not installed; {package.use}", install(package.name))

    probe.__name__ = package.name
    return probe


def torch_build() -> EnvFinding:
    """The version of PyTorch and what it was built for."""
    found = installed("torch")
    fix = install(f"torch>={'.'.join(map(str, OLDEST_TORCH))}")
    if found is None:
        return EnvFinding("PyTorch", "red", "not installed", fix)
    import torch

    built_for = f"CUDA {torch.version.cuda}" if torch.version.cuda else "ROCm" if torch.version.hip else "the CPU"
    value = f"{torch.__version__}, built for {built_for}"
    if numbers(torch.__version__) < OLDEST_TORCH:
        return EnvFinding("PyTorch", "red", f"{value}: the labs need 2.11 or newer", fix)
    return EnvFinding("PyTorch", "ok", value)


def gpu() -> EnvFinding:
    """The first GPU that PyTorch can use, with all of its memory."""
    import torch

    if torch.cuda.is_available():
        first = torch.cuda.get_device_properties(0)
        more = f" (and {torch.cuda.device_count() - 1} more)" if torch.cuda.device_count() > 1 else ""
        return EnvFinding("GPU", "ok", f"{first.name}, {first.total_memory / GiB:.1f} GiB{more}")
    if shutil.which("nvidia-smi"):
        value = "there is an NVIDIA driver, but PyTorch cannot use it; the labs run on the CPU"
        return EnvFinding("GPU", "note", value, "choose a CUDA build at https://pytorch.org/get-started/locally")
    return EnvFinding("GPU", "ok", "none: every point can be earned without one")


def triton() -> EnvFinding:
    """Triton, or how to do its labs where there are no wheels of it."""
    found = installed("triton")
    if found:
        return EnvFinding("triton", "ok", found)
    if platform.system() != "Linux":
        fix = "for later labs use Google Colab, a Linux container (on Windows: WSL) or a Linux machine"
        return EnvFinding("triton", "note", "Linux only; later labs, on GPU kernels, need it", fix)
    return EnvFinding("triton", "note", "not installed; later labs, on GPU kernels, need it", install("triton"))


def nvrtc() -> EnvFinding:
    """NVRTC, the compiler of CUDA C++, with its headers; it needs no GPU."""
    from labkit.simt import nvrtc as compiler

    what = "needed by a later lab, on CUDA C++"
    if platform.system() == "Darwin":
        fix = "for that lab use Google Colab, a Linux container or a Linux or Windows machine"
        return EnvFinding("NVRTC", "note", f"Linux and Windows only; {what}", fix)
    try:
        found = ".".join(map(str, compiler.version()))
    except (compiler.NvrtcMissing, OSError):
        return EnvFinding("NVRTC", "note", f"not installed; {what}", install("nvidia-cuda-nvrtc nvidia-cuda-runtime"))
    if not compiler.header_folders():
        return EnvFinding("NVRTC", "note", f"{found}, without the headers; {what}", install("nvidia-cuda-runtime"))
    return EnvFinding("NVRTC", "ok", found)


def installed(name: str) -> str | None:
    """The installed version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def install(requirement: str) -> str:
    """The command that installs it; a comparison in it must not reach the shell."""
    return f'python -m pip install "{requirement}"' if ">" in requirement else f"python -m pip install {requirement}"


def numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: "2.13.0+cpu" -> (2, 13, 0)."""
    return tuple(int(part) for part in re.match(r"\d+(\.\d+)*", text)[0].split("."))


PROBES = (torch_build, gpu, triton, nvrtc, *(probe_of(package) for package in PACKAGES))
"""The probes of this module, in the order of the page."""
