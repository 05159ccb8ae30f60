"""The interpreter beside a GPU: launches on tensors of the GPU are compiled and run there, all others interpreted.

So one notebook has both: its checks and meters give kernels tensors of the CPU, and the same kernels are as fast as the
GPU is on tensors of its own. Which of the two a launch is decides itself by its arguments; nothing is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType

import torch

_CHOSEN, _CACHE = "_labkit_beside_gpu", "_labkit_interpreted_cache"


@dataclass(frozen=True)
class Stock:
    """Triton's own ways to launch, tune and remember, as they were before the interpreter's patches."""

    launch: Callable
    bench: Callable
    check_disk_cache: Callable


def stock() -> Stock:
    """To be read before anything is patched."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    return Stock(JITFunction.run, Autotuner._bench, Autotuner.check_disk_cache)


def chosen(interpreter: ModuleType | None) -> bool:
    """Whether this process has both; interpreter: Triton's, or None where it was never imported."""
    return getattr(interpreter, _CHOSEN, False)


def patch(interpreter: ModuleType, before: Stock) -> None:
    """Give launches on the GPU back to Triton; all other patches are in place."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    launch, bench, check_disk_cache, tune = (
        JITFunction.run,
        Autotuner._bench,
        Autotuner.check_disk_cache,
        Autotuner.run,
    )

    def run(self, *args, **kwargs):
        return (before.launch if on_gpu((*args, *kwargs.values())) else launch)(self, *args, **kwargs)

    def _bench(self, *args, **kwargs):
        return (before.bench if on_gpu((*args, *kwargs.values())) else bench)(self, *args, **kwargs)

    def disk_cache(self, *args):
        return (before.check_disk_cache if on_gpu((self.nargs or {}).values()) else check_disk_cache)(self, *args)

    def run_tuned(self, *args, **kwargs):
        if on_gpu((*args, *kwargs.values())):
            return tune(self, *args, **kwargs)
        # Triton remembers its choice by sizes and types: what is taken for the CPU, untimed, must not serve the GPU.
        kept, self.cache = self.cache, vars(self).setdefault(_CACHE, {})
        try:
            return tune(self, *args, **kwargs)
        finally:
            self.cache = kept

    JITFunction.run, Autotuner._bench, Autotuner.check_disk_cache, Autotuner.run = run, _bench, disk_cache, run_tuned
    setattr(interpreter, _CHOSEN, True)


def on_gpu(arguments: Iterable[object]) -> bool:
    """Whether one of a launch's arguments is on a GPU; those in tuples and under descriptors as well."""
    for one in arguments:
        if isinstance(one, tuple):
            if on_gpu(one):
                return True
        elif isinstance(base := getattr(one, "base", one), torch.Tensor) and base.is_cuda:
            return True
    return False
