"""Lab 17: what is asked, given and run for an embedding whose rows are cut over the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Table(Case):
    """`rows` rows of `width` on each rank; tokens of this shape. idle: the last rank has none of the tokens."""

    n_ranks: int = 3
    rows: int = 8
    width: int = 5
    tokens: tuple[int, ...] = (6,)
    idle: bool = False

    @property
    def vocab(self) -> int:
        return self.n_ranks * self.rows


def table_inputs(case: Table, gen: torch.Generator) -> dict[str, Any]:
    """tokens, some of them twice, and the gradient of what is looked up, for all; each rank's rows.

    Where there are several ranks, rank 0's last row and rank 1's first one are among those looked up.
    """
    highest = case.vocab - case.rows * case.idle
    tokens = torch.randint(highest, case.tokens, generator=gen)
    tokens.flatten()[-1] = tokens.flatten()[0]
    if case.n_ranks > 1:
        tokens.flatten()[1:3] = torch.tensor([case.rows - 1, case.rows])
    return {
        "tokens": tokens,
        "dout": 0.5 + torch.rand(*case.tokens, case.width, generator=gen),
        "ranks": [{"weight": draw_rows(case, gen)} for _ in range(case.n_ranks)],
    }


def draw_rows(case: Table, gen: torch.Generator) -> torch.Tensor:
    """Numbers of either sign, none of them near 0: what a rank leaves at 0 is neither the largest nor the smallest."""
    sign = 2 * torch.randint(2, (case.rows, case.width), generator=gen) - 1
    return sign * (1 + torch.rand(case.rows, case.width, generator=gen))


def drive_vocab_embedding(ans, case: Table, tree: dict, stage) -> dict[str, Any]:
    """out: what was looked up; grad: of the rank's rows, None where there is none."""
    weight = tree["mine"]["weight"].clone().to(stage.device).requires_grad_()
    out = ans.vocab_parallel_embedding(stage.comm, weight, tree["tokens"].to(stage.device))
    if out.requires_grad:
        out.backward(tree["dout"].to(stage.device))
    return {"out": out.detach(), "grad": weight.grad}


VOCAB_EMBEDDING = Exercise(
    id="17-vocab-embedding",
    title="Look up tokens in a table that is cut",
    points=0.6,
    optional=True,
    minutes=15,
    difficulty=1,
    answers=(Answer("vocab_parallel_embedding"),),
    public=(
        Table(),
        Table(4, 7, 3, (2, 5)),
        Table(3, 9, 4, (4,), idle=True),
        Table(5, 40, 6, (3, 3)),
        Table(1, 6, 3, (4,)),
    ),
    inputs=table_inputs,
    drive=drive_vocab_embedding,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=30.0),
)
