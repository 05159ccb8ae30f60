"""The workers that lab 07 plays do what real ones of a DataLoader do, and its loader takes the times that it should."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from labkit.exercises.lab07.sim_loader import Load, LoadTimes, SimLoaders
from labkit.exercises.lab07.workers import play_workers
from labkit.simdevice import Machine, SimDevice


class Telling(IterableDataset):
    """Says who it is, and what is drawn there: from generators of its own and of the process."""

    def __init__(self) -> None:
        self.own = torch.Generator().manual_seed(5)

    def __iter__(self) -> Iterator[list[float]]:
        info = get_worker_info()
        told = [-1, 0, 0] if info is None else [info.id, info.num_workers, info.seed]
        yield [*told, torch.rand(()).item(), random.random(), torch.rand((), generator=self.own).item()]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("n_workers", [1, 3])
def test_played_workers_are_as_real_ones(n_workers: int) -> None:
    real = list(DataLoader(Telling(), batch_size=None, num_workers=n_workers, multiprocessing_context="fork"))
    base_seed = int(real[0][2])
    played, changed = play_workers(Telling(), n_workers, base_seed, most=10)
    assert [samples[0] for samples in played] == real and changed == []
    # A copy of the dataset, whose generator has not gone on.
    assert len({samples[0][-1] for samples in played}) == 1


def test_without_workers_the_main_process_loads_and_is_watched() -> None:
    dataset = Telling()
    ((sample,),), changed = play_workers(dataset, 0, 7, most=10)
    assert sample[:3] == [-1, 0, 0] and changed == ["torch", "Python"] and get_worker_info() is None
    ((later,),), _ = play_workers(dataset, 0, 7, most=10)
    assert later[-1] != sample[-1]


def epoch_s(n_batches: int = 6, consume_s: float = 0.0, n_epochs: int = 1, **settings) -> float:
    with SimDevice(Machine(launch_s=0.0)) as sim:
        loaders = SimLoaders(sim, LoadTimes(load_s=1.0, start_s=0.5, n_cores=2))
        loader = loaders.DataLoader([torch.zeros(1)] * (2 * n_batches), 2, **settings)
        for _ in range(n_epochs):
            for _ in loader:
                loaders.spend("work", consume_s)
        return sim.now_s


def test_the_main_process_loads_and_works_in_turns() -> None:
    assert epoch_s(consume_s=3.0) == 6 * (2.0 + 3.0)


def test_workers_load_beside_the_work_and_beside_one_another() -> None:
    assert epoch_s(num_workers=1) == 0.5 + 6 * 2.0
    assert epoch_s(num_workers=2) == 0.5 + 3 * 2.0
    assert epoch_s(num_workers=1, consume_s=3.0) == 0.5 + 2.0 + 6 * 3.0


def test_workers_beyond_the_cores_share_them() -> None:
    assert epoch_s(num_workers=6) == 0.5 + 2.0 * 3


def test_workers_start_in_each_epoch_unless_they_stay() -> None:
    assert epoch_s(n_epochs=3, num_workers=2) == 3 * (0.5 + 6.0)
    assert epoch_s(n_epochs=3, num_workers=2, persistent_workers=True) == 0.5 + 3 * 6.0


def test_a_worker_loads_no_further_ahead_than_its_factor() -> None:
    # While the first batch is worked on for 20 s, the worker loads as many as it may.
    def after_a_long_step(factor: int) -> float:
        with SimDevice(Machine(launch_s=0.0)) as sim:
            loaders = SimLoaders(sim, LoadTimes(load_s=1.0, start_s=0.0, n_cores=1))
            batches = iter(loaders.DataLoader([torch.zeros(1)] * 9, 1, num_workers=1, prefetch_factor=factor))
            next(batches)
            loaders.spend("a long step", 20.0)
            list(batches)
            return sim.now_s

    assert after_a_long_step(2) == 1.0 + 20.0 + 6.0 and after_a_long_step(4) == 1.0 + 20.0 + 4.0


def test_it_refuses_what_a_loader_refuses() -> None:
    for wrong in ({"persistent_workers": True}, {"prefetch_factor": 2}):
        with pytest.raises(ValueError, match="num_workers > 0"):
            epoch_s(**wrong)
        with pytest.raises(ValueError, match="num_workers"):
            DataLoader([1], **wrong)


def test_the_loads_of_workers_are_recorded_as_they_were() -> None:
    with SimDevice(Machine(launch_s=0.0)) as sim:
        loaders = SimLoaders(sim, LoadTimes(load_s=1.0, start_s=0.5, n_cores=2))
        for _ in loaders.DataLoader([torch.zeros(1)] * 6, 2, num_workers=2):
            loaders.spend("work", 0.25)
    assert loaders.loads == [Load(0, 0.5, 2.5), Load(1, 0.5, 2.5), Load(0, 2.5, 4.5)]
