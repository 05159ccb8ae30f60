"""Lab 07: which worker of which rank loads which sample, and with which random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.generators import another_process
from labkit.exercises.lab07.workers import play_workers
from labkit.spec import Answer, Case, Exercise

N_EPOCHS = 3
OTHER_SEED = 1009
N_NUMBERS = 2**62
"""So many that two draws are equal only where their generators were."""


@dataclass(frozen=True)
class Grid(Case):
    """n samples for world_size ranks with n_workers workers each; with 0 workers the main process of a rank loads."""

    n: int
    world_size: int
    n_workers: int
    seed: int = 0


def no_inputs(case: Grid, gen: torch.Generator) -> dict[str, Any]:
    """The case says it all."""
    return {}


def drive(ans, case: Grid, tree: dict, stage) -> dict[str, Any]:
    """epochs[e][r][w]: what worker w of rank r yields in epoch e, pairs of a sample's number and of what its generator
    drew. n_loads[e]: the calls of `load`. started: how many samples the workers of rank 0 yield if each is asked for
    one, and the calls of `load` meanwhile. repeated: the last epoch once more, if the main process loads, whose dataset
    is no copy; None otherwise. again: the last epoch of a run that begins with it, in other processes whose
    global generators have other seeds. other: the last epoch with another seed. changed: whose global generators have
    another state after loading in the main process.
    """
    n_loads, changed = 0, set()

    def load(index: int, generator: torch.Generator) -> list[int]:
        nonlocal n_loads
        n_loads += 1
        return [int(index), int(torch.randint(N_NUMBERS, (), generator=generator))]

    def ranks(seed: int) -> list:
        return [ans.WorkerSamples(load, case.n, rank, case.world_size, seed=seed) for rank in range(case.world_size)]

    def epoch_of(of: list, base_seed: int) -> list[list[list]]:
        # Every rank has begun with the same torch.manual_seed, so DataLoader draws the same base seed on all of them.
        found = []
        for dataset in of:
            samples, touched = play_workers(dataset, case.n_workers, base_seed, most=2 * case.n + 10)
            found.append(samples)
            changed.update(touched)
        return found

    def last_epoch(seed: int, base_seed: int) -> list[list[list]]:
        new = ranks(seed)
        for dataset in new:
            dataset.set_epoch(N_EPOCHS - 1)
        return epoch_of(new, base_seed)

    mine, epochs, loads = ranks(case.seed), [], []
    for epoch in range(N_EPOCHS):
        for dataset in mine if epoch else ():
            dataset.set_epoch(epoch)
        before = n_loads
        epochs.append(epoch_of(mine, 31_337 + 1_000 * epoch))
        loads.append(n_loads - before)
    repeated = None if case.n_workers else epoch_of(mine, 31_337 + 1_000 * (N_EPOCHS - 1))
    before, new = n_loads, ranks(case.seed)[0]
    firsts, _ = play_workers(new, case.n_workers, 31_337, most=1)
    started = [sum(map(len, firsts)), n_loads - before]
    with another_process(ans.WorkerSamples):
        again = last_epoch(case.seed, 71_993)
    return {
        "epochs": epochs,
        "n_loads": loads,
        "started": started,
        "repeated": repeated,
        "again": again,
        "other": last_epoch(case.seed + OTHER_SEED, 88_001),
        "changed": sorted(changed),
    }


SHARD_WORKERS = Exercise(
    id="07-shard-workers",
    title="Every sample once, whoever loads it",
    points=4,
    minutes=25,
    difficulty=2,
    answers=(Answer("WorkerSamples"),),
    public=(
        Grid(48, 1, 4),
        Grid(48, 2, 3),
        Grid(50, 4, 2, seed=3),
        Grid(47, 3, 0, seed=1),
        Grid(40, 1, 0),
        Grid(7, 2, 5),
        Grid(17, 1, 4, seed=2),
        Grid(50, 2, 12),
    ),
    inputs=no_inputs,
    drive=drive,
)
