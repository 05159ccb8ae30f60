"""What a worker on this machine gets to see: the interpreter and its libraries, read-only, and the worker's own code.

Solutions, hidden cases, expected values, courses and home folders are not in it, wherever they are installed.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from grading import own_labs
from grading.worker.confine.plan import PLAIN, Limits, Place, Plan
from grading.worker.confine.tier import Tier

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/sys/devices/system/cpu",
)
NAMES = "names"
"""The folder beside the worker's code with the files that a program in the view finds names in."""
LIGHT = ("torch", "grading.worker.job", "matplotlib.pyplot", "labkit.figures")
FULL = (*LIGHT, "torch._dynamo")
"""What labs import. PyTorch loads its compiler at the first optimizer, in seconds that every fork would pay again."""
MODELS = (
    *FULL,
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.llama.modeling_llama",
    "transformers.models.t5.modeling_t5",
    "peft",
)
"""The same for labs on models of libraries."""
COMPILER = ("grading.worker.compiling",)
"""Beside one of these, for labs that count what `torch.compile` does: what it loads and builds at a first graph."""
KERNELS = ("grading.worker.kernels",)
"""Beside one of these, for labs on Triton kernels: Triton's interpreter, which takes a second to load."""
CUDA = ("grading.worker.cuda",)
"""Beside one of these, for labs on CUDA C++: NVRTC, and what executes its code."""


def interpreter() -> str:
    """The interpreter itself, behind the links of a virtual environment."""
    return os.path.realpath(sys.executable)


def library_paths() -> list[str]:
    """The folders of the standard library and of the installed packages, in the order of the import path."""
    paths = sysconfig.get_paths()
    libraries = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return list(dict.fromkeys(os.path.realpath(path) for path in (*libraries, f"{paths['stdlib']}/lib-dynload")))


def plan_of(tier: Tier, tree: Path, preload: tuple[str, ...] | None = None, limits: Limits = PLAIN) -> Plan:
    """The plan for a worker whose own code is in `tree`."""
    if preload is None:
        preload = LIGHT if tier.sandbox_per_submission else FULL
    if not tier.isolates:
        return Plan(tier, preload, limits=limits)
    shown = [*_SYSTEM, os.path.realpath(sys.base_prefix), *library_paths(), os.path.realpath(tree)]
    places = layout(shown, _secret_places())
    return Plan(tier, preload, (*places, *_names(tree)), limits)


def _names(tree: Path) -> tuple[Place, ...]:
    """The files by which a name is looked up, ours in place of the machine's: they know this machine alone."""
    folder = Path(os.path.realpath(tree)) / "grading" / "worker" / NAMES
    return tuple(Place("bind", f"/etc/{name}", str(folder / name)) for name in ("hosts", "nsswitch.conf"))


def _secret_places() -> list[str]:
    """Our own code in full, for when it lies inside of something shown: installed, or checked out under /usr."""
    # Not imported for it: labkit takes seconds, and who only asks which tiers there are needs none of it.
    packages = [Path(find_spec(name).origin).resolve().parent for name in ("labkit", "grading")]
    installed = [Path(path) / package.name for path in library_paths() for package in packages]
    beside = [packages[1].parent / name for name in ("solutions", "tests", ".git")]
    beside += own_labs.folders()
    return [str(path) for path in (*packages, *installed, *beside) if path.is_dir()]


def layout(shown: list[str], secret: list[str]) -> tuple[Place, ...]:
    """The places in the order in which they have to be laid out: what is inside another comes after it."""
    wanted = {path: "link" if os.path.islink(path) else "bind" for path in shown if os.path.lexists(path)}
    wanted |= dict.fromkeys(secret, "cover")
    places: list[Place] = []
    for path in sorted(wanted, key=lambda path: (path.count("/"), path)):
        around = [place for place in places if place.how != "link" and path.startswith(f"{place.path}/")]
        inmost = around[-1].how if around else None
        if inmost == "bind" if wanted[path] == "cover" else inmost != "bind":
            places.append(Place(wanted[path], path))
    return tuple(places)
