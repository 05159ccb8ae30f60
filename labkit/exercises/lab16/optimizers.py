"""Lab 16: the optimizers that its drivers hand out, and the bytes that they hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

LEARNING_RATE = 0.05
STATES = {"momentum": 1, "adamw": 2}
"""By optimizer, the numbers that it keeps for each element."""


def make(name: str, parameters: Any) -> torch.optim.Optimizer:
    """SGD with momentum, or AdamW with an epsilon so large that rounding errors of a gradient near 0 stay small."""
    if name == "momentum":
        return torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=LEARNING_RATE, eps=1e-2, weight_decay=0.1)


def warm_up(name: str) -> None:
    """Take a step of an element: PyTorch loads tens of MB at its first one, which are no rank's own."""
    element = torch.zeros(1)
    element.grad = torch.zeros(1)
    make(name, [element]).step()


class Maker:
    """What an answer is handed to make its optimizers with; it remembers them."""

    def __init__(self, name: str) -> None:
        warm_up(name)
        self.name = name
        self.made: list[torch.optim.Optimizer] = []
        self.n_steps = 0

    def __call__(self, parameters: Any) -> torch.optim.Optimizer:
        optimizer = make(self.name, parameters)
        optimizer.register_step_post_hook(self._count)
        self.made.append(optimizer)
        return optimizer

    def _count(self, *_: object) -> None:
        self.n_steps += 1

    def state_bytes(self) -> int:
        """Of all optimizers made: the bytes of their states, each storage once and as a whole; counters left out."""
        states = (state for optimizer in self.made for state in optimizer.state.values())
        return held_bytes(value for state in states for value in state.values() if torch.is_tensor(value))


def held_bytes(tensors: Iterable[Tensor | None]) -> int:
    """The bytes of the storages that these tensors lie in, each once; single numbers are left out."""
    storages = {}
    for tensor in tensors:
        if tensor is not None and tensor.dim():
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def shard_size(n_elements: int, n_ranks: int) -> int:
    """Elements of the longest shard."""
    return -(-n_elements // n_ranks)
