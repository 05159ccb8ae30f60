"""Lab 15: which samples a rank sees in an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index as index_of
from typing import Any

import torch

from labkit.exercises.generators import another_process, global_generators
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
    resumed: those of new samplers told to start with the last epoch. elsewhere: the same in another process. other,
    other_last: the first and the last epoch's with another seed.

    Each rank's own random numbers are elsewhere, as on ranks that have drawn masks and augmentations. seeded: the ranks
    on which iterating changed the state of a global generator, and its owners.
    """
    seeded: set[tuple[int, str]] = set()

    def samplers(seed: int) -> list:
        return [
            ans.ShardSampler(case.n_samples, rank, case.world_size, seed=seed, drop_last=case.drop_last)
            for rank in range(case.world_size)
        ]

    def orders(of: list) -> list[list[int]]:
        found = []
        for rank, sampler in enumerate(of):
            with global_generators(7 + rank) as changed:
                found.append([index_of(index) for index in sampler])
            seeded.update((rank, owner) for owner in changed)
        return found

    def set_epoch(of: list, epoch: int) -> None:
        for sampler in of:
            sampler.set_epoch(epoch)

    mine, epochs = samplers(case.seed), []
    for epoch in range(N_EPOCHS):
        set_epoch(mine, epoch)
        epochs.append(orders(mine))

    def last_epoch(seed: int) -> list[list[int]]:
        new = samplers(seed)
        set_epoch(new, N_EPOCHS - 1)
        return orders(new)

    with another_process(ans.ShardSampler):
        elsewhere = last_epoch(case.seed)
    return {
        "epochs": epochs,
        "lengths": [len(sampler) for sampler in mine],
        "again": orders(mine),
        "resumed": last_epoch(case.seed),
        "elsewhere": elsewhere,
        "other": orders(samplers(case.seed + OTHER_SEED)),
        "other_last": last_epoch(case.seed + OTHER_SEED),
        "seeded": [list(one) for one in sorted(seeded)],
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
