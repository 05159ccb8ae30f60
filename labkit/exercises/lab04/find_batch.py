"""Lab 04: a search for the largest micro-batch, with real out-of-memory errors under a cap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.meters import limit_memory
from labkit.spec import Answer, Case, Exercise, Run

Built = tuple[nn.Module, torch.optim.Optimizer]
Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Capped(Case):
    """A network vocabulary -> width -> n_hidden -> vocabulary under AdamW, and texts of up to `longest` tokens."""

    cap_bytes: int
    global_batch: int = 64
    longest: int = 12
    n_hidden: int = 64
    width: int = 64
    n_vocab: int = 512


def build(case: Capped, device: torch.device) -> Built:
    """A new model and its optimizer, without states yet."""
    model = nn.Sequential(
        nn.Embedding(case.n_vocab, case.width),
        nn.Linear(case.width, case.n_hidden),
        nn.Tanh(),
        nn.Linear(case.n_hidden, case.n_vocab),
    ).to(device)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)


def make_batch(case: Capped, n_texts: int, length: int, device: torch.device) -> Batch:
    """Token numbers and labels, (n_texts, length) each."""
    tokens = torch.randint(case.n_vocab, (2, n_texts, length), device=device)
    return tokens[0], tokens[1]


def loss_of(model: nn.Module, batch: Batch) -> Tensor:
    """The mean loss of the batch's tokens."""
    x, y = batch
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def lengths_of(case: Capped, gen: torch.Generator) -> dict[str, list[int]]:
    """lengths: of twelve texts in no order, the longest among them."""
    short = torch.randint(3, case.longest // 2 + 1, (11,), generator=gen).tolist()
    return {"lengths": [*short[:7], case.longest, *short[7:]]}


def drive_search(ans, case: Capped, tree: dict, stage) -> dict[str, Any]:
    """sizes: that were tried, one for each run of equal ones. left: bytes alive when a model was built.

    The smaller last micro-batch of a window is no size of its own.
    """
    sizes: list[int] = []
    left: list[int] = []

    def made(n_texts: int, length: int) -> Batch:
        if not sizes or n_texts not in (sizes[-1], case.global_batch % sizes[-1]):
            sizes.append(n_texts)
        return make_batch(case, n_texts, length, stage.device)

    with limit_memory(case.cap_bytes) as profile:

        def built() -> Built:
            left.append(profile.live_bytes)
            return build(case, stage.device)

        found = ans.find_batch(built, made, loss_of, list(tree["lengths"]), case.global_batch)
    pair = list(found) if isinstance(found, tuple | list) and len(found) == 2 else [found, None]
    return {"micro_batch": pair[0], "n_accumulate": pair[1], "sizes": sizes, "left": left}


FIND_BATCH = Exercise(
    id="04-find-batch",
    title="The largest micro-batch, by trying",
    points=4,
    minutes=30,
    difficulty=3,
    answers=(Answer("find_batch"),),
    public=(
        Capped(2_520_000),
        Capped(3_170_000, global_batch=100, n_hidden=80),
        Capped(1_450_000, longest=100),  # no room for a single text
        Capped(16_000_000, global_batch=20),  # room for all
    ),
    inputs=lengths_of,
    drive=drive_search,
    run=Run(wall_s=20.0),
)
