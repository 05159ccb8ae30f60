"""Optimizers of lab 06 with small states, one parameter at a time: `step()`, `zero_grad()`, and `update(parameter)`.

Arithmetic is in float32, and weights of 16 bits are rounded stochastically. What a parameter needs from step to step
lies in `state[parameter]`. There are no parameter groups; `lr` may be set between steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

BLOCK = 256


_DROPPED_BITS = {torch.bfloat16: 16, torch.float16: 13}
"""Of float32's mantissa, those that the dtype has no place for."""


class Optimizer:
    """What all have in common. weight_decay is decoupled, and left out for vectors."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.lr, self.weight_decay = lr, weight_decay
        self.state: dict[nn.Parameter, dict] = {}

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                self.update(parameter)

    @torch.no_grad()
    def update(self, parameter: nn.Parameter) -> None:
        """Update one parameter by its gradient."""
        state = self.state.setdefault(parameter, {"step": 0})
        state["step"] += 1
        change = self.change(parameter.grad, state)
        decay = 1 - self.lr * self.weight_decay if parameter.dim() > 1 else 1.0
        apply_change(parameter, change, decay)

    def zero_grad(self) -> None:
        """Free the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def change(self, grad: Tensor, state: dict) -> Tensor:
        """What is to be subtracted from the weights, in float32."""
        raise NotImplementedError


def apply_change(parameter: Tensor, change: Tensor, decay: float) -> None:
    """parameter * decay - change, rounded stochastically where the parameter has 16 bits."""
    if parameter.dtype == torch.float32:
        parameter.mul_(decay).sub_(change)
        return
    wide = change.neg_().add_(parameter, alpha=decay)
    if dropped := _DROPPED_BITS.get(parameter.dtype):
        bits = wide.view(torch.int32)
        bits.add_(torch.empty_like(bits).random_(2**dropped))
        bits.bitwise_and_(-(2**dropped))
    parameter.copy_(wide)


class AdamW(Optimizer):
    """Both moments in float32: 8 bytes a parameter."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        self.betas, self.eps = betas, eps

    def change(self, grad: Tensor, state: dict) -> Tensor:
        m, v = self.load(state, grad)
        m.lerp_(grad.float(), 1 - self.betas[0])
        v.mul_(self.betas[1]).addcmul_(grad.float(), grad.float(), value=1 - self.betas[1])
        self.store(state, m, v)
        return self.ratio(m, v, state["step"])

    def ratio(self, m: Tensor, v: Tensor, step: int) -> Tensor:
        """lr * m / sqrt(v), each divided by what it lacks in the first steps."""
        first, second = (1 - beta**step for beta in self.betas)
        return m.mul(self.lr / first).div_(v.sqrt().div_(math.sqrt(second)).add_(self.eps))

    def load(self, state: dict, grad: Tensor) -> tuple[Tensor, Tensor]:
        if "m" not in state:
            state["m"], state["v"] = (torch.zeros_like(grad, dtype=torch.float32) for _ in range(2))
        return state["m"], state["v"]

    def store(self, state: dict, m: Tensor, v: Tensor) -> None:
        """They were changed in place."""


class AdamW8bit(AdamW):
    """Moments of 8 bits in blocks of 256, each with its own scale: 2.03 bytes a parameter.

    The first moment is mapped by its signed square root, the second by its fourth root, so that small values do not
    become zero. Vectors keep theirs in float32. At every size of the game a matrix is a whole number of blocks.
    """

    def load(self, state: dict, grad: Tensor) -> tuple[Tensor, Tensor]:
        if grad.dim() < 2:
            return super().load(state, grad)
        if "m" not in state:
            return tuple(torch.zeros_like(grad, dtype=torch.float32) for _ in range(2))
        m = _unpacked(state["m"], grad.shape)
        v = _unpacked(state["v"], grad.shape)
        return m.mul_(m.abs()), v.square_().square_()

    def store(self, state: dict, m: Tensor, v: Tensor) -> None:
        if m.dim() > 1:
            state["m"] = _packed(m.abs().sqrt_().mul_(m.sign()))
            state["v"] = _packed(v.sqrt().sqrt_())


def _packed(x: Tensor) -> tuple[Tensor, Tensor]:
    """Codes of 8 bits, and a scale for each block."""
    blocks = x.view(-1, BLOCK)
    scales = blocks.abs().amax(1, keepdim=True).clamp_(min=1e-30).div_(127)
    return blocks.div(scales).round_().to(torch.int8), scales


def _unpacked(packed: tuple[Tensor, Tensor], shape: torch.Size) -> Tensor:
    codes, scales = packed
    return codes.to(torch.float32).mul_(scales).view(shape)


class Adafactor(Optimizer):
    """The second moment as a row and a column, no first moment: nearly no bytes. Updates clipped to a size of 1."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        beta: float = 0.99,
        weight_decay: float = 0.0,
        eps: float = 1e-30,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        self.beta, self.eps = beta, eps

    def change(self, grad: Tensor, state: dict) -> Tensor:
        wide = grad.float()
        squares = wide.square().add_(self.eps)
        beta = min(self.beta, 1 - 1 / (state["step"] + 1))
        if grad.dim() < 2:
            v = _averaged(state, "v", squares, beta)
            scale = v.rsqrt()
        else:
            rows = _averaged(state, "rows", squares.mean(1, keepdim=True), beta)
            columns = _averaged(state, "columns", squares.mean(0, keepdim=True), beta)
            scale = (rows / rows.mean()).rsqrt() * columns.rsqrt()
        del squares
        update = wide * scale
        size = update.square().mean().sqrt().clamp_(min=1.0)
        return update.mul_(self.lr / size)


def _averaged(state: dict, name: str, value: Tensor, beta: float) -> Tensor:
    if name not in state:
        state[name] = torch.zeros_like(value)
    return state[name].mul_(beta).add_(value, alpha=1 - beta)


class Muon(AdamW):
    """Momentum, orthogonalized by five steps of Newton–Schulz, for matrices; AdamW for `others` (embeddings, vectors).

    lr: of matrices, whose update has singular values near 1, scaled by 0.2 sqrt(the longer side). others_lr: AdamW's.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        others: Iterable[nn.Parameter],
        lr: float,
        others_lr: float,
        momentum: float = 0.95,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        matrices, others = list(matrices), list(others)
        super().__init__([*matrices, *others], lr)
        self.matrices, self.others_lr, self.momentum, self.dtype = set(matrices), others_lr, momentum, dtype

    @torch.no_grad()
    def update(self, parameter: nn.Parameter) -> None:
        if parameter not in self.matrices:
            matrix_lr, self.lr = self.lr, self.others_lr
            super().update(parameter)
            self.lr = matrix_lr
            return
        state = self.state.setdefault(parameter, {})
        if "m" not in state:
            state["m"] = torch.zeros_like(parameter)
        m = state["m"].mul_(self.momentum).add_(parameter.grad)
        ahead = parameter.grad.add(m, alpha=self.momentum).to(self.dtype)
        change = orthogonal(ahead).float().mul_(0.2 * math.sqrt(max(parameter.shape)) * self.lr)
        apply_change(parameter, change, 1.0)


def orthogonal(x: Tensor) -> Tensor:
    """The matrix with its singular values brought near 1, by five steps of Newton–Schulz."""
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / x.norm().clamp(min=1e-7)
    for a, b, c in [(3.4445, -4.775, 2.0315)] * 5:
        square = x @ x.T
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.T if tall else x
