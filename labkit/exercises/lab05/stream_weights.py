"""Lab 05: what is asked, given and run for layers whose weights live on the host."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from labkit.simdevice import Machine, SimDevice, as_plain
from labkit.spec import Answer, Case, Exercise

FLOPS_PER_S = 1e9
"""Slow, so that tiny layers take times that stand out beside a launch."""
BASEMENT = (2.0, 71e12, 3.9e9)
"""Bytes per parameter, FLOP/s and link bytes/s: bfloat16, an RTX 3090 on four lanes of PCIe 3.0."""
SERVER = (2.0, 989e12, 55e9)
"""An H100 on sixteen lanes of PCIe 5.0, as fast as copies get there."""


@dataclass(frozen=True)
class Stack(Case):
    """Square layers and micro-batches; a layer computes `compute_share` times as long as its weights travel.

    rig: bytes per parameter, FLOP/s and link bytes/s of another machine, whose tokens are asked for.
    """

    n_layers: int = 8
    width: int = 64
    n_tokens: int = 8
    n_batches: int = 2
    compute_share: float = 1.0
    rig: tuple[float, float, float] = BASEMENT

    @property
    def weight_bytes(self) -> int:
        return 4 * self.width**2

    @property
    def activation_bytes(self) -> int:
        """One micro-batch of n_tokens x width in float32."""
        return 4 * self.n_tokens * self.width

    @property
    def layer_flops(self) -> int:
        """One layer on all micro-batches."""
        return 2 * self.n_batches * self.n_tokens * self.width**2


def machine_of(case: Stack) -> Machine:
    """A machine whose link is as fast as `compute_share` asks for."""
    copy_s = case.layer_flops / FLOPS_PER_S / case.compute_share
    return Machine(
        "the device of the check",
        flops_per_s=FLOPS_PER_S,
        memory_bytes_per_s=1e12,
        to_device_bytes_per_s=case.weight_bytes / copy_s,
        to_host_bytes_per_s=case.weight_bytes / copy_s,
        launch_s=2e-7,
        kernel_s=1e-7,
        copy_s=1e-7,
    )


def stack_inputs(case: Stack, gen: torch.Generator) -> dict[str, object]:
    """weights: one (width, width) for each layer; xs: the micro-batches, (n_tokens, width) each."""
    scale = 1.5 / math.sqrt(case.width)
    return {
        "weights": [scale * torch.randn(case.width, case.width, generator=gen) for _ in range(case.n_layers)],
        "xs": [torch.randn(case.n_tokens, case.width, generator=gen) for _ in range(case.n_batches)],
    }


def layer(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """One layer on one micro-batch."""
    return F.silu(F.linear(x, weight))


def drive_stream(ans, case: Stack, tree: dict, stage) -> dict[str, object]:
    """out: the last layer's results. commands: what the device was asked for; those from n_before on count."""
    with SimDevice(machine_of(case)) as sim, torch.no_grad():
        weights = [weight.pin_memory() for weight in tree["weights"]]
        xs = [x.to(sim.device) for x in tree["xs"]]
        sim.synchronize()
        n_before = len(sim.commands)
        out = ans.stream_layers(sim, layer, weights, xs)
        sim.synchronize()
        commands = as_plain(sim.commands)
        out = [y.cpu() for y in out]
    return {"out": out, "tokens": ans.tokens_to_hide(*case.rig), "commands": commands, "n_before": n_before}


STREAM_WEIGHTS = Exercise(
    id="05-stream-weights",
    title="Layers whose weights live on the host",
    points=0.6,
    optional=True,
    minutes=30,
    difficulty=2,
    answers=(Answer("stream_layers"), Answer("tokens_to_hide")),
    public=(
        Stack(),
        Stack(n_layers=10, n_batches=1, compute_share=0.6, rig=SERVER),
        Stack(n_layers=7, width=72, n_batches=3, compute_share=1.8, rig=(1.0, 989e12, 450e9)),
        Stack(n_layers=1),
    ),
    inputs=stack_inputs,
    drive=drive_stream,
)
