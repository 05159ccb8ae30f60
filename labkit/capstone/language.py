"""The language that the tiny model learns: drawn from a seed, so that no weights and no table can be brought along.

After a word come four others; which ones, the word before it decides as well, by the half of the dictionary it is in.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

import torch
from torch import Tensor

CHANCES = (0.7, 0.2, 0.07, 0.03)
"""Of the four words that may follow."""
FLOOR = -sum(chance * torch.tensor(chance).log().item() for chance in CHANCES)
"""What no model's loss can be below on average, in nats per token."""


def drawn_from(seed: int, what: str) -> int:
    """A seed for one of the things that hang on a run's own: none of them tells another, nor the run's.

    A script sees its first weights and its tokens. Neither leads to the sentences of the evaluation.
    """
    return int.from_bytes(hashlib.sha256(f"{what}: {seed}".encode()).digest()[:6], "big")


class Language:
    """Sentences of `seq_len` + 1 words each: those to train on, and others to evaluate on."""

    def __init__(self, seed: int, vocab: int, seq_len: int) -> None:
        self.seed, self.vocab, self.seq_len = seed, vocab, seq_len

    @cached_property
    def followers(self) -> Tensor:
        """(2, vocab, 4): the words that may follow, by the half that the word before is in, and by the word."""
        gen = torch.Generator().manual_seed(drawn_from(self.seed, "the words that follow"))
        return torch.stack(
            [torch.stack([torch.randperm(self.vocab, generator=gen) for _ in CHANCES], -1) for _ in range(2)]
        )

    def sentences(self, n: int, stream: int) -> Tensor:
        """(n, seq_len + 1) words; those of another stream are others."""
        gen = torch.Generator().manual_seed(drawn_from(self.seed, f"sentences {stream}"))
        words = torch.randint(self.vocab, (n, self.seq_len + 1), generator=gen)
        picks = torch.multinomial(torch.tensor(CHANCES), n * self.seq_len, replacement=True, generator=gen)
        for place, pick in enumerate(picks.view(self.seq_len, n), start=1):
            half = words[:, place - 2] * 2 // self.vocab if place > 1 else torch.zeros(n, dtype=torch.long)
            words[:, place] = self.followers[half, words[:, place - 1], pick]
        return words


EVALUATION = 0
"""The stream of what is evaluated on. Training begins at the next."""
N_EVALUATED = 256
"""Sentences."""


def evaluation(seed: int, vocab: int, seq_len: int) -> Tensor:
    """The sentences that a model trained on this seed's language is evaluated on."""
    return Language(seed, vocab, seq_len).sentences(N_EVALUATED, EVALUATION)
