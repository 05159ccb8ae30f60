"""Put the interpreter in place, at any moment: before or after Triton was imported and kernels were defined.

Kernels that were decorated for a GPU run interpreted as well. Nothing is undone: a process keeps its choice.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings

from labkit.devices import has_gpu

_MARK = "_labkit_patched"


class TritonMissing(ImportError):
    """Triton is not installed, or has no build for this system; the text says what to do."""


def enable(*, beside_gpu: bool = False) -> bool:
    """Let Triton kernels run on the CPU of this machine; false where there is a GPU to run them, and nothing is done.

    beside_gpu: also where there is a GPU. Launches that have a tensor on the GPU are then compiled and run there, and
    all others are interpreted; it is to be asked for first, since nothing is undone. May be called again, at no cost.
    Warns (RuntimeWarning) when the installed Triton differs from those that the patches were written for, naming the
    functions. Raises TritonMissing.
    """
    if importlib.util.find_spec("triton") is None:
        raise TritonMissing(how_to_get_triton(sys.platform))
    if has_gpu() and not (beside_gpu or enabled_beside_gpu()):
        return False
    if enabled():
        return True
    from triton.runtime import interpreter

    from labkit.interpreter import (
        arithmetic,
        atomics,
        autotune,
        beside,
        canary,
        launch,
        libdevice,
        masked,
        products,
        reductions,
        rewrite,
    )

    unknown = canary.changed()
    if unknown:
        import triton

        warnings.warn(
            f"Triton {triton.__version__} is not one that labkit.interpreter was written for (3.6 to 3.9): "
            f"{', '.join(unknown)} changed, so values on the CPU may be wrong. Install triton==3.9.0 or 3.6.0.",
            RuntimeWarning,
            stacklevel=2,
        )
    before = beside.stock()
    for room in (arithmetic, products, masked, atomics, reductions, libdevice, rewrite, launch):
        room.patch(interpreter)
    autotune.patch()
    if has_gpu():
        beside.patch(interpreter, before)
    setattr(interpreter, _MARK, True)
    return True


def enabled() -> bool:
    """Whether this process has the patched interpreter."""
    module = sys.modules.get("triton.runtime.interpreter")
    return module is not None and getattr(module, _MARK, False)


def enabled_beside_gpu() -> bool:
    """Whether this process has the patched interpreter for tensors of the CPU, and a GPU for its own."""
    from labkit.interpreter import beside

    return beside.chosen(sys.modules.get("triton.runtime.interpreter"))


def how_to_get_triton(platform: str) -> str:
    """What to do where Triton is missing; platform as in `sys.platform`."""
    if platform == "linux":
        return "Triton is not installed: python -m pip install triton"
    system = {"darwin": "macOS", "win32": "Windows"}.get(platform, platform)
    return (
        f"Triton has no builds for {system}. Do this lab on Linux: in Google Colab, in a container "
        "(docker run -it python:3.12), in WSL 2 on Windows, or on a server; the other labs run here."
    )
