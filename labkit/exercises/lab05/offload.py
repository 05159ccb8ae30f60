"""Lab 05: what is asked, given and run for activations that wait for the backward pass on the host."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from labkit.simdevice import Machine, SimDevice, as_plain
from labkit.spec import Answer, Case, Exercise

FLOPS_PER_S = 1e9
"""Slow, so that tiny layers take times that stand out beside a launch."""


@dataclass(frozen=True)
class Layers(Case):
    """Layers of silu(x @ w.T) with square weights; `copy_share`: their copies take that part of the forward pass."""

    n_layers: int = 8
    n_tokens: int = 64
    width: int = 32
    n_in_flight: int = 3
    copy_share: float = 0.6

    @property
    def activation_bytes(self) -> int:
        """One tensor of n_tokens x width in float32."""
        return 4 * self.n_tokens * self.width

    @property
    def weight_bytes(self) -> int:
        return 4 * self.width**2

    @property
    def forward_flops(self) -> int:
        """Of one layer."""
        return 2 * self.n_tokens * self.width**2


def machine_of(case: Layers) -> Machine:
    """A machine on which copying a layer's two activations takes `copy_share` of the layer's forward pass."""
    link_bytes_per_s = 2 * case.activation_bytes / (case.copy_share * case.forward_flops / FLOPS_PER_S)
    return Machine(
        "the device of the check",
        flops_per_s=FLOPS_PER_S,
        memory_bytes_per_s=1e12,
        to_device_bytes_per_s=link_bytes_per_s,
        to_host_bytes_per_s=link_bytes_per_s,
        launch_s=2e-7,
        kernel_s=1e-7,
        copy_s=1e-7,
    )


def layer_inputs(case: Layers, gen: torch.Generator) -> dict[str, object]:
    """weights: one (width, width) for each layer; x and grad: (n_tokens, width), the input and the loss's gradient."""
    shape = (case.width, case.width)
    scale = 1.5 / math.sqrt(case.width)
    return {
        "weights": [scale * torch.randn(shape, generator=gen) for _ in range(case.n_layers)],
        "x": torch.randn(case.n_tokens, case.width, generator=gen),
        "grad": torch.randn(case.n_tokens, case.width, generator=gen),
    }


def forward(weights: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """All layers in a row. Each saves its input and the argument of its silu, two tensors of the same size."""
    for weight in weights:
        x = F.silu(F.linear(x, weight))
    return x


def drive_offload(ans, case: Layers, tree: dict, stage) -> dict[str, object]:
    """grads: of the weights, then of x. commands: all that the device was asked for; those from n_before on count."""
    with SimDevice(machine_of(case)) as sim:
        weights = [weight.to(sim.device).requires_grad_() for weight in tree["weights"]]
        x, grad = tree["x"].to(sim.device).requires_grad_(), tree["grad"].to(sim.device)
        sim.synchronize()
        n_before = len(sim.commands)
        pack, unpack = ans.offload_hooks(sim, weights, case.n_in_flight)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = forward(weights, x)
        y.backward(grad)
        sim.synchronize()
        commands = as_plain(sim.commands)
    return {"grads": [leaf.grad for leaf in (*weights, x)], "commands": commands, "n_before": n_before}


OFFLOAD = Exercise(
    id="05-offload",
    title="Let activations wait on the host",
    points=0.7,
    optional=True,
    minutes=45,
    difficulty=3,
    answers=(Answer("offload_hooks"),),
    public=(Layers(), Layers(n_layers=12, n_in_flight=4, copy_share=0.8), Layers(n_layers=9, n_tokens=48, width=48)),
    inputs=layer_inputs,
    drive=drive_offload,
)
