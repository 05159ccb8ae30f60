"""Lab 04: signal and noise of a gradient from its micro-batches, and the batch size that they suggest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise, Tree


@dataclass(frozen=True)
class Noisy(Case):
    """Gradients of a quadratic: `length` long, noise of a sample with trace `trace`, in n_draws windows.

    A window has n_micro micro-batches of micro_batch samples each.
    """

    n_micro: int
    micro_batch: int
    length: float
    trace: float
    n_dims: int = 24
    n_draws: int = 1200


def windows(case: Noisy, gen: torch.Generator) -> Tree:
    """gradients: (n_draws, n_micro, n_dims) float64. signals, noises: eight measured pairs, some signals negative."""

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=gen, dtype=torch.float64)

    true = draw(case.n_dims)
    true *= case.length / true.norm()
    variances = torch.rand(case.n_dims, generator=gen, dtype=torch.float64) ** 3
    variances *= case.trace / variances.sum()
    noise = draw(case.n_draws, case.n_micro, case.n_dims) * (variances / case.micro_batch).sqrt()
    signals = case.length**2 * (1 + 1.2 * draw(8))
    signals += case.length**2 - signals.mean()
    noises = case.trace * (1 + 0.2 * draw(8))
    return {"gradients": true + noise, "signals": signals.tolist(), "noises": noises.tolist()}


def drive_noise(ans, case: Noisy, tree: Tree, stage) -> dict[str, Any]:
    """signals, noises: one for each window, (n_draws,) float64. critical: of the eight given pairs."""
    pairs = [ans.noise_scale(window, case.micro_batch) for window in tree["gradients"].to(stage.device)]
    signals, noises = (torch.tensor([float(pair[i]) for pair in pairs], dtype=torch.float64) for i in (0, 1))
    critical = float(ans.critical_batch(list(tree["signals"]), list(tree["noises"])))
    return {"signals": signals, "noises": noises, "critical": critical}


NOISE_SCALE = Exercise(
    id="04-noise-scale",
    title="How noisy is the gradient?",
    points=3,
    minutes=25,
    difficulty=3,
    answers=(Answer("noise_scale"), Answer("critical_batch")),
    public=(Noisy(4, 8, 0.5, 40.0), Noisy(2, 1, 2.0, 6.0), Noisy(8, 3, 1.0, 100.0, n_dims=40)),
    inputs=windows,
    drive=drive_noise,
)
