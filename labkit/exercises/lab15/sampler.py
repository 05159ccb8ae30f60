"""Lab 15: which samples a rank sees in an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise

N_EPOCHS = 3
OTHER_SEED = 1009
"""What is added to the seed for a second run, far from the numbers of the epochs."""


@dataclass(frozen=True)
class Split(Case):
    """n_samples are dealt to world_size ranks."""

    n_samples: int
    world_size: int
    drop_last: bool = False
    seed: int = 0


def no_inputs(case: Split, gen: torch.Generator) -> dict[str, Any]:
    """The case says it all."""
    return {}


def drive(ans, case: Split, tree: dict, stage) -> dict[str, Any]:
    """epochs[e][r]: the indices that rank r gets in epoch e. again: those of the last epoch, iterated once more.
    resumed: those of new samplers told to start with the last epoch. other: the first epoch's with another seed.

    Each rank's own random numbers are elsewhere, as on ranks that have drawn masks and augmentations. seeded: the ranks
    on which iterating changed the state of torch's random numbers.
    """
    seeded: set[int] = set()

    def samplers(seed: int) -> list:
        return [
            ans.ShardSampler(case.n_samples, rank, case.world_size, seed=seed, drop_last=case.drop_last)
            for rank in range(case.world_size)
        ]

    def orders(of: list) -> list[list[int]]:
        found = []
        for rank, sampler in enumerate(of):
            torch.manual_seed(7 + rank)
            before = torch.get_rng_state()
            found.append([int(index) for index in sampler])
            if not torch.equal(before, torch.get_rng_state()):
                seeded.add(rank)
        return found

    def set_epoch(of: list, epoch: int) -> None:
        for sampler in of:
            sampler.set_epoch(epoch)

    mine, epochs = samplers(case.seed), []
    for epoch in range(N_EPOCHS):
        set_epoch(mine, epoch)
        epochs.append(orders(mine))
    resumed = samplers(case.seed)
    set_epoch(resumed, N_EPOCHS - 1)
    return {
        "epochs": epochs,
        "lengths": [len(sampler) for sampler in mine],
        "again": orders(mine),
        "resumed": orders(resumed),
        "other": orders(samplers(case.seed + OTHER_SEED)),
        "seeded": sorted(seeded),
    }


SAMPLER = Exercise(
    id="15-sampler",
    title="Who sees which sample",
    points=3,
    minutes=20,
    difficulty=2,
    answers=(Answer("ShardSampler"),),
    public=(
        Split(48, 4),
        Split(50, 4, seed=3),
        Split(50, 4, drop_last=True),
        Split(3, 8),
        Split(40, 1),
        Split(5, 8, drop_last=True),
    ),
    inputs=no_inputs,
    drive=drive,
)
