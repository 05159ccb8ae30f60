"""Lab 08: a small task, on which a low-rank update is trained over a frozen weight. It judges nothing."""

from __future__ import annotations

import torch

N_ROWS, RANK, N_STEPS, RATE = 256, 4, 120, 0.02


def loss_after_training(weight: torch.Tensor, frozen: torch.Tensor) -> float:
    """Mean squared error of `frozen` plus a trained update, where `weight` plus another update is the truth.

    The noise of the targets has variance 1, which no update can explain: the loss ends near 1.
    """
    gen = torch.Generator().manual_seed(0)
    n_out, n_in = weight.shape
    weight, frozen = weight / weight.std(), frozen / weight.std()
    x = torch.randn(N_ROWS, n_in, generator=gen) / n_in**0.5
    shift = torch.randn(n_out, RANK, generator=gen) @ torch.randn(RANK, n_in, generator=gen) / RANK**0.5
    y = x @ (weight + shift).T + torch.randn(N_ROWS, n_out, generator=gen)
    a = (torch.randn(RANK, n_in, generator=gen) / n_in**0.5).requires_grad_()
    b = torch.zeros(n_out, RANK, requires_grad=True)
    fixed = y - x @ frozen.T
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in (a, b)]
    for step in range(1, N_STEPS + 1):
        loss = (fixed - x @ a.T @ b.T).square().mean()
        for p, (first, second), grad in zip((a, b), moments, torch.autograd.grad(loss, (a, b)), strict=True):
            first.lerp_(grad, 0.1)
            second.lerp_(grad * grad, 0.01)
            with torch.no_grad():
                p -= RATE * (first / (1 - 0.9**step)) / ((second / (1 - 0.99**step)).sqrt() + 1e-8)
    return float(loss.detach())
