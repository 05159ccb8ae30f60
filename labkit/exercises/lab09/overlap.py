"""Lab 09: what is asked, given and run for batches that are copied to the device while it computes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from labkit.simdevice import Machine, SimDevice, as_plain
from labkit.spec import Answer, Case, Exercise

FLOPS_PER_S = 1e9
"""Slow, so that tiny batches take times that stand out beside a launch."""


@dataclass(frozen=True)
class Feed(Case):
    """Batches of n_rows x width; copying one takes `copy_share` times as long as its kernels.

    asked: number of batches, seconds of a batch's copy and of its kernels, for which the speed-up is predicted.
    """

    n_batches: int = 8
    n_rows: int = 64
    width: int = 32
    copy_share: float = 1.0
    asked: tuple[int, float, float] = (20, 1e-3, 4e-3)

    @property
    def batch_bytes(self) -> int:
        """One batch in float32."""
        return 4 * self.n_rows * self.width

    @property
    def batch_flops(self) -> int:
        """One batch through the layer."""
        return 2 * self.n_rows * self.width**2


def machine_of(case: Feed) -> Machine:
    """A machine whose link is as slow as `copy_share` asks for."""
    return Machine(
        "the device of the check",
        flops_per_s=FLOPS_PER_S,
        memory_bytes_per_s=1e12,
        to_device_bytes_per_s=case.batch_bytes / (case.copy_share * case.batch_flops / FLOPS_PER_S),
        to_host_bytes_per_s=1e12,
        launch_s=2e-7,
        kernel_s=1e-7,
        copy_s=1e-7,
    )


def feed_inputs(case: Feed, gen: torch.Generator) -> dict[str, object]:
    """weight: (width, width); batches: (n_rows, width) each, in ordinary memory of the host."""
    return {
        "weight": torch.randn(case.width, case.width, generator=gen) / math.sqrt(case.width),
        "batches": [torch.randn(case.n_rows, case.width, generator=gen) for _ in range(case.n_batches)],
    }


def layer(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """What is computed on each batch."""
    return F.silu(F.linear(x, weight))


def drive_overlap(ans, case: Feed, tree: dict, stage) -> dict[str, object]:
    """out: the results, used on the current stream without a wait. The answer's commands: n_before to n_after."""
    with SimDevice(machine_of(case)) as sim, torch.no_grad():
        weight = tree["weight"].to(sim.device)
        buffers = [torch.empty(case.n_rows, case.width, device=sim.device) for _ in range(2)]
        sim.synchronize()
        n_before = len(sim.commands)
        out = ans.double_buffered(sim, lambda x: layer(weight, x), tree["batches"], buffers)
        n_after = len(sim.commands)
        if not isinstance(out, list | tuple):
            raise TypeError(f"double_buffered should return a list of tensors, and returned {type(out).__name__}")
        used = [y + 0 for y in out]
        sim.synchronize()
        commands = as_plain(sim.commands)
        results = [y.cpu() for y in used]
    return {
        "out": results,
        "speedup": ans.overlap_speedup(*case.asked),
        "commands": commands,
        "n_before": n_before,
        "n_after": n_after,
    }


OVERLAP = Exercise(
    id="09-overlap",
    title="Copy while you compute",
    points=4,
    minutes=35,
    difficulty=2,
    answers=(Answer("double_buffered"), Answer("overlap_speedup")),
    public=(
        Feed(),
        Feed(n_batches=9, width=40, copy_share=0.6, asked=(8, 3e-3, 3e-3)),
        Feed(n_batches=7, n_rows=48, copy_share=1.7, asked=(5, 6e-3, 2e-3)),
        Feed(n_batches=1, asked=(1, 2e-3, 2e-3)),
    ),
    inputs=feed_inputs,
    drive=drive_overlap,
)
