"""Lab 19: a text cut into parts for ranks that attend to it causally, so that all of them have the same work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.spec import Answer, Case, Exercise

N_VOCAB = 1000
NO_INPUT, NO_LABEL, NO_POSITION = 0, -100, -1
"""What stands in the places of a rank that has fewer tokens than others."""


@dataclass(frozen=True)
class Text(Case):
    """n_texts texts of n_tokens tokens, and one more for the last label."""

    n_tokens: int
    n_ranks: int
    n_texts: int = 1


def text_inputs(case: Text, gen: torch.Generator) -> dict[str, Any]:
    """tokens: (n_texts, n_tokens + 1), int64, none of them 0. values: (n_texts, n_tokens, 2), float32.

    positions: what another way of dealing gives each rank, so that `undo` is asked for more than this one.
    """
    shape = (case.n_texts, case.n_tokens + 1)
    length = -(-case.n_tokens // case.n_ranks) + 1
    positions = torch.full((case.n_ranks, length), NO_POSITION)
    for place, position in enumerate(torch.randperm(case.n_tokens, generator=gen).tolist()):
        positions[place % case.n_ranks, place // case.n_ranks] = position
    return {
        "tokens": torch.randint(1, N_VOCAB, shape, generator=gen),
        "values": torch.randn(case.n_texts, case.n_tokens, 2, generator=gen),
        "positions": positions,
    }


def parts_of(values: Tensor, positions: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For each rank its values, (n_texts, length, 2), with NaN where it has no token, and its positions."""
    parts = []
    for mine in positions:
        part = values[:, mine.clamp_min(0)].clone()
        part[:, mine == NO_POSITION] = float("nan")
        parts.append((part, mine.clone()))
    return parts


def drive(ans, case: Text, tree: dict, stage) -> dict[str, Any]:
    """order: positions by rank. parts: what each rank gets. whole: the values, put together again."""
    order = [torch.as_tensor(mine).tolist() for mine in ans.zigzag(case.n_tokens, case.n_ranks)]
    dealt = ans.deal(tree["tokens"], case.n_ranks)
    parts = [dict(zip(("inputs", "labels", "positions"), part, strict=True)) for part in dealt]
    whole = ans.undo(parts_of(tree["values"], tree["positions"]), case.n_tokens)
    return {"order": order, "parts": parts, "whole": whole}


ZIGZAG = Exercise(
    id="19-zigzag",
    title="Cut a triangle into equal parts",
    points=3,
    minutes=30,
    difficulty=2,
    answers=(Answer("zigzag"), Answer("deal"), Answer("undo")),
    public=(
        Text(16, 4),
        Text(24, 3, n_texts=2),
        Text(261, 4),
        Text(13, 2),
        Text(7, 5),  # 10 chunks for 7 tokens: a rank may have none
        Text(7, 1, n_texts=2),
    ),
    inputs=text_inputs,
    drive=drive,
)
