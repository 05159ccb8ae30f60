"""A run on real tensors: what is trained. Of several cards, each is a simulated rank."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.capstone.language import Language
from labkit.capstone.model import Decoder, start
from labkit.capstone.run import OnHost, Run
from labkit.capstone.size import TINY
from labkit.ranks import Comm

_AT_ONCE = 256
"""Sentences that are drawn together."""


class RealRun(Run):
    """The tiny size, on the language of `seed`. comm: to the other cards, where there are some."""

    def __init__(self, seed: int, comm: Comm | None = None) -> None:
        super().__init__(*((comm.rank, comm.world_size) if comm else ()))
        self._put("_seed", seed)
        self._put("_comm", comm)
        self._put("_language", Language(seed, TINY.vocab, TINY.seq_len))
        self._put("_drawn", torch.empty(0, TINY.seq_len + 1, dtype=torch.long))
        self._put("_stream", 1 + self.rank)

    def _build(self, dtype: torch.dtype, attention: str) -> Decoder:
        model = Decoder(TINY, attention)
        start(model, torch.Generator().manual_seed(self._seed))
        return model.to(dtype)

    def _next_sequences(self, n: int) -> Tensor:
        while len(self._drawn) < n:
            more = self._language.sentences(_AT_ONCE, self._stream)
            self._put("_stream", self._stream + self.world_size)
            self._put("_drawn", torch.cat([self._drawn, more]))
        both, rest = self._drawn[:n].clone(), self._drawn[n:]
        self._put("_drawn", rest)
        return both

    def _kept(self, tensor: Tensor) -> Tensor:
        return tensor.clone()

    def _restore(self, out: Tensor, there: OnHost) -> None:
        out.copy_(there.value)

    def _all_reduce(self, tensor: Tensor) -> None:
        self._comm.all_reduce(tensor)

    def _reduce_scatter(self, out: Tensor, tensor: Tensor) -> None:
        if self._comm is None:
            out.copy_(tensor)
        else:
            self._comm.reduce_scatter_single(out, tensor.contiguous())

    def _all_gather(self, out: Tensor, part: Tensor) -> None:
        if self._comm is None:
            out.copy_(part)
        else:
            self._comm.all_gather_single(out, part.contiguous())
