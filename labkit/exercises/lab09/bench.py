"""Lab 09: what is asked, given and run for a function that times one call on an asynchronous device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from labkit.simdevice import Machine, NotReady, SimDevice
from labkit.spec import Answer, Case, Exercise

LAUNCH_S = 5e-6
CACHE_FOR_CALLS = 4
"""The cache holds what so many calls touch."""
ENOUGH_FOR_MIB = 1_000_000
"""Numbers of a tensor in place for which the cache has 15 MiB, as a GPU's has: a buffer of a few MiB is too small."""


@dataclass(frozen=True)
class Timed(Case):
    """A function of n_kernels kernels on a device of its own.

    kind: "in place" moves memory, "product" multiplies square matrices. n: numbers, or rows, of a tensor.
    one_ms: what a kernel takes from a cold cache when nothing else runs; jitter: the part by which others may lengthen
    it; cache_gain: how many times faster the cache is than memory.
    """

    kind: Literal["in place", "product"] = "in place"
    n: int = 480
    n_kernels: int = 1
    n_repeats: int = 1
    one_ms: float = 1.5
    first_call_ms: float = 60.0
    jitter: float = 0.0
    cache_gain: float = 4.0

    @property
    def tensor_bytes(self) -> int:
        return 4 * (self.n if self.kind == "in place" else self.n**2)


def machine_of(case: Timed) -> Machine:
    """Slow enough that tiny tensors take one_ms."""
    in_place = case.kind == "in place"
    # A kernel in place reads and writes its tensor; a product is never held up by memory.
    bytes_per_s = 2 * case.tensor_bytes / (1e-3 * case.one_ms) if in_place else 1e12
    return Machine(
        "the device of the check",
        flops_per_s=1e15 if in_place else 2 * case.n**3 / (1e-3 * case.one_ms),
        memory_bytes_per_s=bytes_per_s,
        cache_bytes=CACHE_FOR_CALLS * case.n_kernels * case.tensor_bytes,
        cache_bytes_per_s=case.cache_gain * bytes_per_s,
        launch_s=LAUNCH_S,
        kernel_s=0.0,
        first_call_s=1e-3 * case.first_call_ms,
        jitter=case.jitter,
    )


def function_of(case: Timed, device: torch.device) -> Callable[[], object]:
    """What is to be timed, with its tensors on the device."""
    shape = (case.n,) if case.kind == "in place" else (case.n, case.n)
    tensors = [torch.ones(shape).to(device) for _ in range(case.n_kernels)]

    def in_place() -> None:
        for tensor in tensors:
            tensor.neg_()

    def product() -> torch.Tensor:
        out = tensors[0]
        for tensor in tensors:
            out = out @ tensor
        return out

    return in_place if case.kind == "in place" else product


def drive_bench(ans, case: Timed, tree: dict, stage) -> dict[str, object]:
    """ms: what the answer read. refused: what the device said when a time was asked for too early, else None."""
    with SimDevice(machine_of(case)) as sim:
        fn = function_of(case, sim.device)
        sim.synchronize()
        try:
            return {"ms": ans.bench(fn, sim, sim.device, lambda: sim.now_s, case.n_repeats), "refused": None}
        except NotReady as error:
            return {"ms": None, "refused": str(error)}


BENCH = Exercise(
    id="09-bench",
    title="Time a function on an asynchronous device",
    points=4,
    minutes=30,
    difficulty=2,
    answers=(Answer("bench"),),
    public=(
        Timed(n=ENOUGH_FOR_MIB),
        Timed(n_kernels=2, n_repeats=61, first_call_ms=600.0, jitter=0.8),
        Timed(kind="product", n=24, n_repeats=50, one_ms=2.0, first_call_ms=600.0, jitter=0.8),
    ),
    inputs=lambda case, generator: {},
    drive=drive_bench,
    forbids=("labkit.bench", "labkit.meters.bench", "triton.testing.do_bench"),
)
