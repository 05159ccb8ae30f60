"""A DataLoader on a simulated device's clock: what its workers do takes virtual time, which passes on the host's clock.

It has the arguments of `torch.utils.data.DataLoader` that matter to time, and its rules for them. The order is that of
the dataset. Nothing runs beside anything here: when a batch is ready is worked out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from labkit.simdevice import SimDevice

PREFETCH_FACTOR = 2
"""DataLoader's own: what each worker loads ahead unless it is told otherwise."""


@dataclass(frozen=True)
class LoadTimes:
    """load_s: for one sample. start_s: until the workers of a loader have started. n_cores: how many can load at once.

    LoadTimes(load_s=0.004, start_s=0.1, n_cores=4)
    """

    load_s: float
    start_s: float
    n_cores: int


@dataclass(frozen=True)
class Load:
    """A worker loads a batch from start_s to end_s: `Load(worker=0, start_s=0.125, end_s=0.25)`."""

    worker: int
    start_s: float
    end_s: float


class SimLoaders:
    """The loaders of one run. made: all of them, in order. loads: what their workers loaded when."""

    def __init__(self, sim: SimDevice, times: LoadTimes) -> None:
        self.sim, self.times = sim, times
        self.made: list[SimLoader] = []
        self.loads: list[Load] = []

    def DataLoader(
        self,
        dataset: Sequence[torch.Tensor],
        batch_size: int = 1,
        *,
        num_workers: int = 0,
        pin_memory: bool = False,
        persistent_workers: bool = False,
        prefetch_factor: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> SimLoader:
        """As `torch.utils.data.DataLoader`. Raises ValueError as that does, and for another order or fewer images."""
        if shuffle or drop_last:
            raise ValueError("shuffle=False and drop_last=False: here every image comes, in the order of the dataset")
        if num_workers == 0 and persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing: use num_workers > 0")
        if num_workers < 0 or batch_size < 1:
            raise ValueError(f"num_workers={num_workers} and batch_size={batch_size}: 0 and 1 are the least")
        loader = SimLoader(
            self, dataset, batch_size, num_workers, pin_memory, persistent_workers, prefetch_factor or PREFETCH_FACTOR
        )
        self.made.append(loader)
        return loader

    def spend(self, name: str, seconds: float) -> None:
        """Let the host's time pass."""
        self.sim.clock.call_driver(name, seconds, device_first=False)


@dataclass
class SimLoader:
    """One of them. n_starts: how often its workers were started. n_epochs: how often it was iterated."""

    owner: SimLoaders
    dataset: Sequence[torch.Tensor]
    batch_size: int
    num_workers: int
    pin_memory: bool
    persistent_workers: bool
    prefetch_factor: int
    n_starts: int = 0
    n_epochs: int = 0

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.batch_size)

    def __iter__(self) -> Iterator[torch.Tensor]:
        self.n_epochs += 1
        if self.num_workers and not (self.persistent_workers and self.n_starts):
            self.n_starts += 1
            self.owner.spend("start workers", self.owner.times.start_s)
        begun_s = self.owner.sim.now_s
        taken_s: list[float] = []
        ready_s: list[float] = []
        for number in range(len(self)):
            indices = range(number * self.batch_size, min((number + 1) * self.batch_size, len(self.dataset)))
            if self.num_workers:
                self._wait(number, len(indices), begun_s, taken_s, ready_s)
            else:
                self.owner.spend("load", len(indices) * self.owner.times.load_s)
            batch = torch.stack([self.dataset[index] for index in indices])
            yield batch.pin_memory() if self.pin_memory else batch

    def _wait(self, number: int, n_samples: int, begun_s: float, taken_s: list[float], ready_s: list[float]) -> None:
        """Until the worker whose turn it is has loaded the batch. It is told to when one is taken that lies so far
        behind as all workers may load ahead.
        """
        times, sim = self.owner.times, self.owner.sim
        told = number - self.num_workers * self.prefetch_factor
        from_s = begun_s if told < 0 else taken_s[told]
        if number >= self.num_workers:
            from_s = max(from_s, ready_s[number - self.num_workers])
        sharing = max(1.0, self.num_workers / times.n_cores)
        ready_s.append(from_s + n_samples * times.load_s * sharing)
        self.owner.loads.append(Load(number % self.num_workers, from_s, ready_s[number]))
        if ready_s[number] > sim.now_s:
            self.owner.spend("wait for the batch", ready_s[number] - sim.now_s)
        taken_s.append(sim.now_s)
