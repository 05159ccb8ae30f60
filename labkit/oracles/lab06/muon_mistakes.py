"""Lab 06: what Newton-Schulz makes of singular values, exactly, and Muon with one mistake or with none."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from labkit.exercises.lab06.muon import COEFFICIENTS, N_ITERATIONS, MuonSteps
from labkit.exercises.lab06.playing import play
from labkit.oracles.hints import once
from labkit.spec import CaseRun

_A, _B, _C = COEFFICIENTS
POLYNOMIALS = {
    "coefficients that converge": ((1.5, -0.5), (15 / 8, -10 / 8, 3 / 8)),
    "no fifth power": ((_A, _B),),
    "seventh power for the fifth": ((_A, _B, 0.0, _C),),
    "no first power": ((1.0, _B, _C), (0.0, _B, _C)),
}
"""Coefficients of the odd powers 1, 3, 5, ...: each mistake may have several forms."""


def powers(sigma: Tensor, n_steps: int, coefficients: tuple[float, ...]) -> Tensor:
    """What n steps of an odd polynomial make of singular values."""
    for _ in range(n_steps):
        sigma = sum(factor * sigma ** (2 * i + 1) for i, factor in enumerate(coefficients))
    return sigma


def normalized_powers(sigma: Tensor) -> Tensor:
    """The same, where the matrix is divided by its norm in every step."""
    for _ in range(N_ITERATIONS):
        sigma = powers(sigma / sigma.norm(), 1, COEFFICIENTS)
    return sigma


def orthogonalized(g: Tensor, mistake: str = "") -> Tensor:
    """The matrix with the same singular vectors, from a decomposition in float64; back in g's dtype."""
    return orthogonalized_ways(g, mistake)[0]


def orthogonalized_ways(g: Tensor, mistake: str) -> list[Tensor]:
    """What each form of the mistake makes of the matrix."""
    if not g.any():
        return [torch.zeros_like(g)]
    u, sigma, vh = torch.linalg.svd(g.double(), full_matrices=False)
    if mistake == "exactly orthogonal":
        return [(u @ vh).to(g.dtype)]
    if mistake == "normalized in every step":
        return [(u * normalized_powers(sigma) @ vh).to(g.dtype)]
    norm = {
        "no normalization": sigma.new_ones(()),
        "divided by the largest singular value": sigma.max(),
    }.get(mistake, sigma.norm())
    n_steps = int(mistake.removeprefix("steps: ")) if mistake.startswith("steps: ") else N_ITERATIONS
    forms = POLYNOMIALS.get(mistake, (COEFFICIENTS,))
    return [(u * powers(sigma / norm, n_steps, form) @ vh).to(g.dtype) for form in forms]


class ExactMuon(torch.optim.Optimizer):
    """Muon as PyTorch has it, with exact polynomials and with blocks; one of its mistakes, or ""."""

    def __init__(self, groups: list[dict], mistake: str = "", n_blocks: int = 1, **settings: object) -> None:
        super().__init__(groups, {"n_blocks": n_blocks, **settings})
        self.mistake = mistake

    @torch.no_grad()
    def step(self) -> None:
        is_ = self.mistake.__eq__
        for group, p in self.stepped():
            state, momentum = self.state[p], group["momentum"]
            buffer = state.setdefault("buffer", torch.zeros_like(p))
            if is_("whole gradients added"):
                buffer.mul_(momentum).add_(p.grad)
            else:
                buffer.lerp_(p.grad, momentum if is_("new and old swapped") else 1 - momentum)
            update = self.with_momentum(buffer, p.grad, momentum)
            axis = int(self.mistake.startswith("blocks of columns"))
            blocks = update.chunk(1 if is_("whole") else group["n_blocks"], axis)
            rows, columns = update.shape if is_("rule of the whole") else blocks[0].shape
            if is_("blocks of columns, rule of rows"):
                rows, columns = update.shape[0] // group["n_blocks"], update.shape[1]
            if is_("columns over rows"):
                rows, columns = columns, rows
            rule = group["adjust"]
            if is_("other rule"):
                rule = "original" if rule == "match_rms_adamw" else "match_rms_adamw"
            factor = max(1, rows / columns) ** 0.5 if rule == "original" else 0.2 * max(rows, columns) ** 0.5
            if is_("no root in the rule"):
                factor = max(1, rows / columns) if rule == "original" else 0.2 * max(rows, columns)
            if is_("ratio below 1"):
                factor = (rows / columns) ** 0.5 if rule == "original" else factor
            if is_("smaller side"):
                factor = 0.2 * min(rows, columns) ** 0.5 if rule == "match_rms_adamw" else factor
            if is_("no 0.2"):
                factor = max(rows, columns) ** 0.5 if rule == "match_rms_adamw" else factor
            factor = 1.0 if is_("no rule") else factor
            shrunk = 0.0 if is_("no decay") else group["lr"] * group["weight_decay"]
            shrunk = group["weight_decay"] if is_("decay not times lr") else shrunk
            shrunk = shrunk * factor if is_("decay by the adjusted rate") else shrunk
            step = update if is_("not orthogonalized") else torch.cat([orthogonalized(one) for one in blocks], axis)
            if is_("decay after the update"):
                p.sub_(group["lr"] * factor * step).mul_(1 - shrunk)
            else:
                p.mul_(1 - shrunk).sub_(group["lr"] * factor * step)

    def stepped(self) -> Iterator[tuple[dict, Tensor]]:
        """Each parameter that a step changes, behind its group: what has no gradient is passed over, or as mistaken."""
        is_ = self.mistake.__eq__
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    yield group, p
                elif is_("stops at None"):
                    return
                elif is_("group stops at None"):
                    break
                elif is_("decays without a gradient"):
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                elif is_("zeros in place of None"):
                    p.grad = torch.zeros_like(p)
                    yield group, p

    def with_momentum(self, buffer: Tensor, grad: Tensor, momentum: float) -> Tensor:
        """What is orthogonalized."""
        ways = {
            "no nesterov": buffer,
            "no momentum": grad,
            "lerp the other way": buffer.lerp(grad, momentum),
            "whole gradient on top": grad + momentum * buffer,
        }
        return ways.get(self.mistake, grad.lerp(buffer, momentum))


@once
def history(run: CaseRun[MuonSteps], mistake: str) -> dict:
    """The weights after each step of a case, with this mistake or with none."""
    return play(lambda groups: ExactMuon(groups, mistake, **run.case.settings()), run.case, run.tree)
