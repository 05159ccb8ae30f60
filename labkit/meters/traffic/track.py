"""`track_traffic`: the bytes that a block of code moves to and from device memory, through kernels and through PyTorch.

Kernels are counted in Triton's interpreter, so on a CPU only. Caches, and the order in which a GPU runs programs, are
not modelled. What PyTorch moves is what its operations must move at least: see `eager`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from labkit import interpreter
from labkit.devices import has_gpu
from labkit.meters.traffic.eager import EagerTraffic
from labkit.meters.traffic.hooks import metered
from labkit.meters.traffic.profile import TrafficProfile


@contextmanager
def track_traffic() -> Iterator[TrafficProfile]:
    """Count a block: `with track_traffic() as traffic: softmax(x)`; then read it, or print it.

    Lanes out of bounds are masked off and reported, never touched. An argument is what its tensor spans, so a view ends
    where the view ends, and lanes between its elements are reported, though let through; memory that a kernel reaches
    through addresses in a tensor, and that is no argument, counts as out of bounds. The counts are exact and the same
    at every run; blocks may be nested, other threads count as well.
    Kernels need Triton; without it, PyTorch's operations are counted all the same. A launch on a GPU inside of the
    block raises RuntimeError.
    """
    profile = TrafficProfile()
    with ExitStack() as stack:
        if importlib.util.find_spec("triton") is not None:
            if not has_gpu() or interpreter.enabled_beside_gpu():
                stack.enter_context(_interpreted(profile))
            if has_gpu():
                stack.enter_context(_refused_on_gpu())
        stack.enter_context(EagerTraffic(profile.operations))
        yield profile


@contextmanager
def _interpreted(profile: TrafficProfile) -> Iterator[None]:
    interpreter.enable()
    from triton.runtime import interpreter as triton_interpreter

    with metered(triton_interpreter, profile):
        yield


@contextmanager
def _refused_on_gpu() -> Iterator[None]:
    from triton.runtime.jit import JITFunction

    stock, beside_gpu = JITFunction.run, interpreter.enabled_beside_gpu()

    def run(self, *args, **kwargs):
        if beside_gpu and not interpreter.on_gpu((*args, *kwargs.values())):
            return stock(self, *args, **kwargs)
        ready = "" if beside_gpu else "call labkit.interpreter.enable(beside_gpu=True) before the block and "
        raise RuntimeError(
            f"the traffic of kernel {self.fn.__name__} cannot be counted on a GPU: {ready}give it tensors on the CPU"
        )

    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = stock
