"""Lab 07: batches of texts of about one length, in an order that is still random, and their padding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from labkit.exercises.generators import global_generators
from labkit.spec import Answer, Case, Exercise

N_EPOCHS = 3
OTHER_SEED = 1009
SPREAD = 1.0
"""Of the logarithm of a text's length."""
MOST_BATCHES = 10_000
"""After so many an endless sampler is left."""


@dataclass(frozen=True)
class Texts(Case):
    """n texts of this median length, in batches of batch_size; n_done batches are drawn before the state is taken."""

    n: int
    batch_size: int
    median: int = 60
    n_done: int = 3
    seed: int = 0


def texts(case: Texts, gen: torch.Generator) -> dict[str, Any]:
    """lengths: of all texts. batch: tokens from 1 on of some texts to be collated."""
    lengths = torch.exp(math.log(case.median) + SPREAD * torch.randn(case.n, generator=gen)).long().clamp(1, 1024)
    shown = lengths[: min(case.batch_size, 4)].clamp(max=12).tolist()
    batch = [torch.randint(1, 30_000, (length,), generator=gen) for length in shown]
    return {"lengths": lengths, "batch": batch}


def drive(ans, case: Texts, tree: dict, stage) -> dict[str, Any]:
    """epochs[e]: the batches of epoch e. again: those of the last epoch by a new sampler. other: by one with another
    seed. resumed: what a new sampler yields that loads the state after n_done batches of epoch 1. n_batches: len().
    collated: the tensors of one batch. changed: whose global generators go on from another state after an epoch.
    """
    lengths = tree["lengths"].tolist()

    def sampler(seed: int):
        return ans.LengthBatches(list(lengths), case.batch_size, seed=seed)

    def batches(of) -> list[list[int]]:
        return [[int(index) for index in batch] for batch in islice(of, MOST_BATCHES)]

    mine, epochs = sampler(case.seed), []
    with global_generators(7) as changed:
        for epoch in range(N_EPOCHS):
            mine.set_epoch(epoch)
            epochs.append(batches(mine))

    def last_epoch(seed: int) -> list[list[int]]:
        new = sampler(seed)
        new.set_epoch(N_EPOCHS - 1)
        return batches(new)

    stopped = sampler(case.seed)
    stopped.set_epoch(1)
    list(islice(stopped, case.n_done))
    state = stopped.state_dict()
    resumed = sampler(case.seed)
    resumed.load_state_dict(state)
    return {
        "epochs": epochs,
        "n_batches": len(mine),
        "again": last_epoch(case.seed),
        "other": last_epoch(case.seed + OTHER_SEED),
        "resumed": batches(resumed),
        "collated": dict(ans.collate([text.clone() for text in tree["batch"]])),
        "changed": changed,
    }


LENGTH_BUCKETS = Exercise(
    id="07-length-buckets",
    title="Batches of one length, in random order",
    points=4,
    minutes=25,
    difficulty=2,
    answers=(Answer("LengthBatches"), Answer("collate")),
    public=(
        Texts(1600, 8),
        Texts(1003, 16, seed=3, n_done=10),
        Texts(50, 8, n_done=0),
        Texts(5, 8, n_done=1),
    ),
    inputs=texts,
    drive=drive,
)
