"""A run on real tensors: what is trained."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from labkit.capstone.cards import Card
from labkit.capstone.language import Language, drawn_from
from labkit.capstone.model import Decoder, start
from labkit.capstone.run import OnHost, Run
from labkit.capstone.size import TINY

_AT_ONCE = 256
"""Sentences that are drawn together."""


class RealRun(Run):
    """The tiny size, on the language of `seed`. card: which of several it runs on, where there are some."""

    def __init__(self, seed: int, card: Card | None = None) -> None:
        super().__init__(*((card.rank, card.world_size) if card else ()))
        self._put("_seed", seed)
        self._put("_card", card)
        self._put("_language", Language(seed, TINY.vocab, TINY.seq_len))
        self._put("_drawn", torch.empty(0, TINY.seq_len + 1, dtype=torch.long))
        self._put("_stream", 1 + self.rank)
        self._put("_sentences", [])

    def _own_tensors(self) -> list[Tensor]:
        on_their_way = self._card.under_way() if self._card else []
        return [self._drawn, self._language.followers, *self._sentences, *on_their_way]

    def _one_step(self, step: Callable[..., object], state: object, number: int) -> int:
        self._put("_sentences", [])
        return super()._one_step(step, state, number)

    def _build(self, dtype: torch.dtype, attention: str) -> Decoder:
        model = Decoder(TINY, attention)
        start(model, torch.Generator().manual_seed(drawn_from(self._seed, "the first weights")))
        return model.to(dtype)

    def _next_sequences(self, n: int) -> Tensor:
        while len(self._drawn) < n:
            more = self._language.sentences(_AT_ONCE, self._stream)
            self._put("_stream", self._stream + self.world_size)
            self._put("_drawn", torch.cat([self._drawn, more]))
        both, rest = self._drawn[:n].clone(), self._drawn[n:]
        self._put("_drawn", rest)
        # A copy of what they were: a script may write into its own.
        self._sentences.append(both.clone())
        return both

    def _kept(self, tensor: Tensor) -> Tensor:
        return tensor.clone()

    def _restore(self, out: Tensor, there: OnHost) -> None:
        out.copy_(there._value)

    def _all_reduce(self, tensor: Tensor) -> None:
        tensor.copy_(self._card.sum(tensor))

    def _reduce_scatter(self, out: Tensor, tensor: Tensor) -> None:
        out.copy_(tensor if self._card is None else self._card.part_of_sum(tensor))

    def _all_gather(self, out: Tensor, part: Tensor) -> None:
        out.copy_(part if self._card is None else self._card.all_parts(part))
