"""Lab 13: cross-entropy whose gradient takes the place of the logits. What is asked, given and run."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab12.shapes import PATIENT
from labkit.spec import Answer, Case, Exercise

MASKED_ROW = 1
"""In this row, all columns before `Tokens.masked_before` are minus infinity, so that whole blocks hold nothing else."""
SURE = 3.5
"""In the same row, the target's logit lies so far above all others together: its probability is 0.97, and in 16 bits
what is left of that after 1 is subtracted would have one digit."""
IGNORED_ROW = 2
"""This row's target is ignore_index."""
LOW_ROW = 3
"""The first of the rows that lie far below 0."""
FIRST_IGNORED = 5
"""Behind the rows that are special."""
FIRST_TARGET = 100
"""Targets are drawn from here on: indices to ignore lie below."""
LEVEL = 300.0
"""Every second row lies about this high, where exp overflows, and those in between as low, where it is 0."""


@dataclass(frozen=True)
class Tokens(Case):
    """Logits of n_tokens rows of a vocabulary which no power of two divides.

    dloss: the gradient that comes in, as if the loss were multiplied with it. n_ignored: rows from FIRST_IGNORED on
    that do not count.
    """

    n_tokens: int = 7
    vocab: int = 4501
    dtype: str = "float32"
    ignore_index: int = -100
    dloss: float = 1.0
    n_ignored: int = 0

    @property
    def masked_before(self) -> int:
        """The last three hundred columns hold numbers in every row."""
        return self.vocab - 300

    @property
    def n_bytes(self) -> int:
        """The bytes of the logits."""
        return self.n_tokens * self.vocab * getattr(torch, self.dtype).itemsize


def token_inputs(case: Tokens, gen: torch.Generator) -> dict:
    """logits: (n_tokens, vocab); targets: (n_tokens,), both ends of the vocabulary among them; dloss: one number."""
    logits = 3 * torch.randn(case.n_tokens, case.vocab, generator=gen) + torch.linspace(0, 4, case.vocab)
    logits[::2] += LEVEL
    logits[LOW_ROW::2] -= LEVEL
    logits[MASKED_ROW, : case.masked_before] = -float("inf")
    logits[MASKED_ROW, -1] = logits[MASKED_ROW, :-1].logsumexp(0) + SURE
    targets = torch.randint(FIRST_TARGET, case.vocab - 1, (case.n_tokens,), generator=gen)
    targets[FIRST_IGNORED : FIRST_IGNORED + case.n_ignored] = case.ignore_index
    targets[0], targets[MASKED_ROW], targets[IGNORED_ROW] = 0, case.vocab - 1, case.ignore_index
    return {
        "logits": logits.to(getattr(torch, case.dtype)),
        "targets": targets,
        "dloss": torch.tensor(case.dloss),
    }


def drive_cross_entropy(ans, case: Tokens, tree: dict, stage) -> dict:
    """Forward and backward in one count; the inputs afterwards say where the gradient lies."""
    logits = tree["logits"].requires_grad_()
    with stage.meter("traffic"), stage.meter("compiled"):
        loss = ans.cross_entropy(logits, tree["targets"], case.ignore_index)
        (dlogits,) = torch.autograd.grad(loss, logits, tree["dloss"])
    return {"loss": loss, "dlogits": dlogits}


CROSS_ENTROPY = Exercise(
    id="13-cross-entropy",
    title="Cross-entropy in the memory of the logits",
    points=4,
    minutes=35,
    difficulty=3,
    answers=(Answer("cross_entropy"),),
    public=(
        Tokens(),
        Tokens(5, 4703, "bfloat16", ignore_index=7, dloss=0.375),
        # More targets than one block of 1024 of them.
        Tokens(1051, 421, ignore_index=7, n_ignored=1040),
        # 259 of them count, which bfloat16 does not have.
        Tokens(261, 421, "bfloat16", n_ignored=1),
    ),
    inputs=token_inputs,
    drive=drive_cross_entropy,
    run=PATIENT,
    meters=("traffic", "compiled"),
    # The vocabulary of Llama 3.
    full_size=Tokens(8192, 128_256, "bfloat16"),
)
