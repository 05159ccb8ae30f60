"""Lab 06: stochastic rounding, the shapes of T5-3B, libraries' optimizers, and what an optimizer costs.

Plumbing of the notebook: nothing here is graded. The trainings are in `optimizer_costs`.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor, nn

from labkit.exercises.lab06.maps import Quantized, dynamic_map, linear_map
from labkit.material.optimizer_costs import (
    MakeOptimizer,
    Plan,
    compare,
    compare_in_backward,
    compare_sizes,
    state_bytes_on,
    train_at_equal_bytes,
)

__all__ = [
    "Both",
    "Plan",
    "Quantized",
    "bitsandbytes_8bit",
    "compare",
    "compare_in_backward",
    "compare_sizes",
    "dynamic_map",
    "linear_map",
    "state_bytes_on",
    "stochastic_round",
    "t5_3b_shapes",
    "torchs_step_in_backward",
    "train_at_equal_bytes",
]


def stochastic_round(x: Tensor, generator: torch.Generator) -> Tensor:
    """Finite float32 numbers rounded to bfloat16 up or down by chance, without bias; a draw for every element.

    For numbers of the usual sizes alone: infinity, NaN and what is next to them are lab 02's business.
    """
    near = x.bfloat16()
    down = torch.where(near.float() > x, torch.nextafter(near, near.new_tensor(-torch.inf)), near)
    up = torch.where(down.float() < x, torch.nextafter(down, near.new_tensor(torch.inf)), down)
    gap = (up.float() - down.float()).clamp(min=torch.finfo(torch.float32).tiny)
    drawn = torch.rand(x.shape, generator=generator, device=x.device)
    return torch.where(drawn < (x - down.float()) / gap, up, down)


class Both:
    """Two optimizers that step together."""

    def __init__(self, first: object, second: object) -> None:
        self.optimizers = (first, second)

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()


def torchs_step_in_backward(model: nn.Module, make_optimizer: MakeOptimizer) -> None:
    """PyTorch's own step in the backward pass, which `torch.distributed` uses; without its public name yet.

    Raises ImportError where PyTorch was built without torch.distributed.
    """
    from torch.distributed.optim import _apply_optimizer_in_backward

    _apply_optimizer_in_backward(make_optimizer, model.parameters(), {})


def bitsandbytes_8bit(lr: float) -> dict[str, MakeOptimizer]:
    """A row for bitsandbytes' 8-bit Adam, where it is installed and runs on this machine; else a line that says why."""
    if find_spec("bitsandbytes") is None:
        print("bitsandbytes is not installed here, so its 8-bit Adam has no row.")
        return {}
    try:
        from bitsandbytes.optim import Adam8bit

        weight = nn.Parameter(torch.zeros(64, 64))
        weight.grad = torch.ones(64, 64)
        Adam8bit([weight], lr=lr).step()
        if not weight.any():
            raise RuntimeError("its step changed nothing")
    except Exception as error:
        # A package of others, which may want a GPU, or another version of PyTorch: the lab goes on without it.
        print(f"bitsandbytes' 8-bit Adam has no row, because it does not run here: {str(error)[:80]}")
        return {}
    return {"bitsandbytes.optim.Adam8bit": lambda params: Adam8bit(params, lr=lr)}


def t5_3b_shapes() -> list[tuple[int, ...]]:
    """The shapes of T5-3B's parameters: 24 layers of encoder and decoder, 32 heads of 128, one tied embedding."""
    width, inner, hidden, n_layers = 1024, 32 * 128, 16384, 24
    attention = 3 * [(inner, width)] + [(width, inner), (width,)]
    mlp = [(hidden, width), (width, hidden), (width,)]
    # A table of relative positions stands in the first layer of each, a norm behind the last.
    ends = [(32, 32), (width,)]
    return [(32128, width), *n_layers * (attention + mlp), *ends, *n_layers * (2 * attention + mlp), *ends]
