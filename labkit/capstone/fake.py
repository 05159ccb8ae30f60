"""A run on tensors that hold no data, of one card among all: what is billed."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.capstone.cost import Costs
from labkit.capstone.model import Decoder
from labkit.capstone.run import OnHost, Run
from labkit.capstone.size import Size
from labkit.meters.memory.tracker import Tracker


class FakeRun(Run):
    """tracker: told which storages are weights and gradients."""

    def __init__(self, size: Size, costs: Costs, tracker: Tracker, rank: int = 0, world_size: int = 1) -> None:
        super().__init__(rank, world_size)
        self._put("_size", size)
        self._put("_costs", costs)
        self._put("_tracker", tracker)

    def _build(self, dtype: torch.dtype, attention: str) -> Decoder:
        # Not .to(): as large as two models for a moment, which the card need not be.
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            model = Decoder(self._size, attention)
        finally:
            torch.set_default_dtype(before)
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(self._label)
            self._label(parameter)
        return model

    def _label(self, parameter: Tensor) -> None:
        self._tracker.label([parameter], "parameters")
        if parameter.grad is not None:
            self._tracker.label([parameter.grad], "gradients", over=(None,))

    def _label_all(self) -> None:
        """What lives on after a step and is neither weight nor gradient is a state."""
        for parameter in self._weights.values():
            self._label(parameter)
        for record in self._tracker.live_records():
            record.label = record.label or "optimizer"

    def _next_sequences(self, n: int) -> Tensor:
        both = torch.randint(self._size.vocab, (n, self._size.seq_len + 1))
        self._tracker.label([both], "inputs")
        return both

    def _kept(self, tensor: Tensor) -> None:
        return None

    def _restore(self, out: Tensor, there: OnHost) -> None:
        """There is nothing to copy."""

    def _all_reduce(self, tensor: Tensor) -> None:
        """There is nothing to add up."""

    def _reduce_scatter(self, out: Tensor, tensor: Tensor) -> None:
        """There is nothing to add up."""

    def _all_gather(self, out: Tensor, part: Tensor) -> None:
        """There is nothing to copy."""
