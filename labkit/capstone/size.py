"""The sizes that a script is run at: a tiny one that is trained, the billion that is billed, and those in between.

All have the same depth, so one script dispatches the same operations at every size.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

N_LAYERS = 4


@dataclass(frozen=True)
class Size:
    """Of the model and its sequences: `Size(width=32, n_heads=4, vocab=64, seq_len=32)` is the tiny one."""

    width: int
    n_heads: int
    vocab: int
    seq_len: int
    n_layers: int = N_LAYERS

    @property
    def n_parameters(self) -> int:
        """Of blocks (12 h² + 2 h each), embeddings that serve as the head too, positions, and the last norm."""
        h = self.width
        return self.n_layers * (12 * h * h + 2 * h) + (self.vocab + self.seq_len + 1) * h

    @property
    def n_multiplied(self) -> int:
        """Of those, the weights that every token is multiplied by: the blocks' matrices, and the head."""
        return self.n_layers * 12 * self.width**2 + self.vocab * self.width


TINY = Size(width=32, n_heads=4, vocab=64, seq_len=32)
BILLION = Size(width=4608, n_heads=36, vocab=16_000, seq_len=2048)


def between(rng: random.Random) -> Size:
    """A size that nobody has seen, between the two; its matrices divide into blocks of 256, as theirs do."""
    n_heads = rng.randrange(5, 16)
    return Size(64 * n_heads, n_heads, 256 * rng.randrange(4, 32), 64 * rng.randrange(2, 12))
