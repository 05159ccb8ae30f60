"""Lab 06: what Newton-Schulz makes of singular values, exactly, and Muon with one mistake or with none."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.exercises.lab06.muon import N_ITERATIONS, polynomial


def orthogonalized(g: Tensor, mistake: str = "") -> Tensor:
    """The matrix with the same singular vectors, from a decomposition in float64; back in g's dtype."""
    if not g.any():
        return torch.zeros_like(g)
    u, sigma, vh = torch.linalg.svd(g.double(), full_matrices=False)
    if mistake == "exactly orthogonal":
        return (u @ vh).to(g.dtype)
    norm = {
        "no normalization": sigma.new_ones(()),
        "divided by the largest element": g.double().abs().max(),
        "divided by the largest singular value": sigma.max(),
    }.get(mistake, sigma.norm())
    n = N_ITERATIONS + {"one step less": -1, "one step more": 1}.get(mistake, 0)
    return (u * polynomial(sigma / norm, n) @ vh).to(g.dtype)


class ExactMuon(torch.optim.Optimizer):
    """Muon as PyTorch has it, with exact polynomials and with blocks; one of its mistakes, or ""."""

    def __init__(self, groups: list[dict], mistake: str = "", n_blocks: int = 1, **settings: object) -> None:
        super().__init__(groups, {"n_blocks": n_blocks, **settings})
        self.mistake = mistake

    @torch.no_grad()
    def step(self) -> None:
        is_ = self.mistake.__eq__
        for group in self.param_groups:
            for p in group["params"]:
                state, momentum = self.state[p], group["momentum"]
                buffer = state.setdefault("buffer", torch.zeros_like(p)).lerp_(p.grad, 1 - momentum)
                update = buffer if is_("no nesterov") else p.grad.lerp(buffer, momentum)
                update = p.grad if is_("no momentum") else update
                blocks = update.chunk(1 if is_("whole") else group["n_blocks"])
                rows, columns = update.shape if is_("rule of the whole") else blocks[0].shape
                rule = group["adjust"]
                if is_("other rule"):
                    rule = "original" if rule == "match_rms_adamw" else "match_rms_adamw"
                factor = max(1, rows / columns) ** 0.5 if rule == "original" else 0.2 * max(rows, columns) ** 0.5
                factor = 1.0 if is_("no rule") else factor
                shrunk = 0.0 if is_("no decay") else group["lr"] * group["weight_decay"]
                shrunk = shrunk * factor if is_("decay by the adjusted rate") else shrunk
                step = update if is_("not orthogonalized") else torch.cat([orthogonalized(one) for one in blocks])
                p.mul_(1 - shrunk).sub_(group["lr"] * factor * step)
