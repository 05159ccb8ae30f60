"""What a script sees of the run that it is part of: a model, tokens, the host's memory, and the other cards.

A script cannot tell from it whether tensors hold data. `real` and `fake` say what each of its calls does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from labkit.capstone.broken import RuleBroken
from labkit.capstone.cost import Costs
from labkit.capstone.model import EAGER, Decoder

MOST_SEQUENCES = 128
"""Of one step, over all cards: what the tiny run can be asked to work on."""


_parameters_of = nn.Module.named_parameters
"""As PyTorch has it: a model can be given a method of this name."""


@dataclass(frozen=True)
class OnHost:
    """A tensor that lies in the host's memory; only `run.to_device` can read it.

    _value: by a name that no script can write. It would be read there without a copy that somebody pays for.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    _value: Tensor | None = None


class Run(ABC):
    """rank: of this card, from 0; world_size: how many cards there are. Everything else is asked for by calls.

    A script can call what has no underscore and can set nothing.
    """

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        self._put("rank", rank)
        self._put("world_size", world_size)
        self._put("_model", None)
        self._put("_weights", {})
        self._put("_shapes", {})
        self._put("_served", 0)
        self._put("_in_step", False)
        self._put("_costs", Costs())

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise RuleBroken(f"run.{name} cannot be set: a script may read what the run offers, and change none of it")

    def _one_step(self, step: Callable[..., object], state: object, number: int) -> int:
        """Call the script's step; how many sequences it took."""
        self._put("_served", 0)
        self._put("_in_step", True)
        try:
            step(self, state, number)
        finally:
            self._put("_in_step", False)
        return self._served

    def model(self, dtype: torch.dtype = torch.float32, attention: str = EAGER) -> Decoder:
        """The model with its first weights, the same on every card. Once a run."""
        if self._model is not None:
            raise RuleBroken("run.model was called twice: a run trains one model")
        with self._costs.paused():
            self._put("_model", self._build(dtype, attention))
        self._put("_weights", dict(_parameters_of(self._model)))
        self._put("_shapes", {name: one.shape for name, one in self._weights.items()})
        return self._model

    def _check_weights(self) -> None:
        """The model has the weights that it was given, and no others: what is trained is what is judged."""
        if self._model is None:
            raise RuleBroken("the script never asked for run.model(): there is nothing that it trains")
        now = dict(_parameters_of(self._model))
        for name in (*self._weights, *now):
            if now.get(name) is not self._weights.get(name) or now[name].shape != self._shapes[name]:
                raise RuleBroken(
                    f"the model's `{name}` is not the weight that run.model made: a script trains those, all of them "
                    "and no others"
                )

    def tokens(self, n: int) -> tuple[Tensor, Tensor]:
        """The next `n` sequences for this card: tokens, and the tokens that follow each. Both (n, seq_len)."""
        if not self._in_step:
            raise RuleBroken("run.tokens was called outside of `step`: tokens are for the steps that were declared")
        if not isinstance(n, int) or n < 1:
            raise RuleBroken(f"run.tokens({n!r}): ask for a whole number of sequences, from 1 on")
        self._put("_served", self._served + n)
        if self._served * self.world_size > MOST_SEQUENCES:
            raise RuleBroken(f"a step may work on {MOST_SEQUENCES} sequences at the most, over all cards")
        with self._costs.paused():
            both = self._next_sequences(n)
            return both[:, :-1], both[:, 1:]

    def to_host(self, tensor: Tensor) -> OnHost:
        """A copy of the tensor in the host's memory. The card waits for it."""
        _check_tensor(tensor)
        tensor = tensor.detach()
        self._costs.called("to_host", tensor)
        self._costs.copied(tensor.numel() * tensor.element_size())
        with self._costs.paused():
            return OnHost(tuple(tensor.shape), tensor.dtype, self._kept(tensor))

    def to_device(self, there: OnHost) -> Tensor:
        """A copy of what lies in the host's memory. The card waits for it."""
        if not isinstance(there, OnHost):
            raise RuleBroken("run.to_device takes what run.to_host has returned, and nothing else")
        self._costs.copied(math.prod(there.shape) * there.dtype.itemsize)
        out = torch.empty(there.shape, dtype=there.dtype)
        self._costs.called("to_device", out)
        with self._costs.paused():
            self._restore(out, there)
        return out

    def all_reduce(self, tensor: Tensor) -> Tensor:
        """Sum the tensor over all cards, in place."""
        _check_tensor(tensor)
        n = self.world_size
        self._costs.called("all_reduce", tensor)
        self._costs.sent(2 * (n - 1) / n * tensor.numel() * tensor.element_size(), 2 * (n - 1))
        if n > 1:
            self._costs.written.add(tensor)
            with self._costs.paused():
                self._all_reduce(tensor)
        return tensor

    def reduce_scatter(self, tensor: Tensor) -> Tensor:
        """The sum over all cards, of which this card gets its part: 1/world_size of the first dimension."""
        _check_tensor(tensor)
        n = self.world_size
        _check_parts(tensor, n)
        self._costs.called("reduce_scatter", tensor)
        self._costs.sent((n - 1) / n * tensor.numel() * tensor.element_size(), n - 1)
        out = torch.empty((tensor.shape[0] // n, *tensor.shape[1:]), dtype=tensor.dtype)
        with self._costs.paused():
            self._reduce_scatter(out, tensor)
        return out

    def all_gather(self, part: Tensor) -> Tensor:
        """The parts of all cards one after the other, along the first dimension."""
        _check_tensor(part)
        n = self.world_size
        self._costs.called("all_gather", part)
        self._costs.sent((n - 1) * part.numel() * part.element_size(), n - 1)
        out = torch.empty((part.shape[0] * n, *part.shape[1:]), dtype=part.dtype)
        self._costs.written.add(out)
        with self._costs.paused():
            self._all_gather(out, part)
        return out

    def _own_tensors(self) -> list[Tensor]:
        """What lies in memory for the run itself, and is no script's."""
        return []

    @abstractmethod
    def _build(self, dtype: torch.dtype, attention: str) -> Decoder: ...

    @abstractmethod
    def _next_sequences(self, n: int) -> Tensor: ...

    @abstractmethod
    def _kept(self, tensor: Tensor) -> Tensor | None: ...

    @abstractmethod
    def _restore(self, out: Tensor, there: OnHost) -> None: ...

    @abstractmethod
    def _all_reduce(self, tensor: Tensor) -> None: ...

    @abstractmethod
    def _reduce_scatter(self, out: Tensor, tensor: Tensor) -> None: ...

    @abstractmethod
    def _all_gather(self, out: Tensor, part: Tensor) -> None: ...


def _check_tensor(tensor: Tensor) -> None:
    if not isinstance(tensor, Tensor):
        raise RuleBroken(f"this is called with a tensor, not with a {type(tensor).__name__}")


def _check_parts(tensor: Tensor, n: int) -> None:
    if tensor.dim() == 0 or tensor.shape[0] % n:
        raise RuleBroken(f"the first dimension of {tuple(tensor.shape)} does not divide into {n} equal parts")
