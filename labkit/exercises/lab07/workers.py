"""DataLoader's worker processes, played one after the other in this one.

A worker is a process that begins as a copy of the main one: it has its own copy of the dataset as that was at the
beginning of the epoch, `get_worker_info()` says which worker it is, and the global generators are seeded as DataLoader
seeds them. Batches, queues and time are not played.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from torch.utils.data._utils import worker as torchs

from labkit.exercises.generators import global_generators


def play_workers(dataset: Iterable, n_workers: int, base_seed: int, most: int) -> tuple[list[list], list[str]]:
    """What each worker's copy of the dataset yields, at most `most` samples of each; and the owners of the global
    generators whose state has changed in the main process.

    n_workers: 0 has the main process load, as DataLoader does. base_seed: what DataLoader drew in the main one.
    """
    if n_workers == 0:
        with global_generators(base_seed) as changed:
            samples = list(islice(dataset, most))
        return [samples], changed
    found = []
    for number in range(n_workers):
        own = copy.deepcopy(dataset)
        with global_generators(base_seed + number), worker_info(number, n_workers, base_seed + number, own):
            found.append(list(islice(own, most)))
    return found, []


@contextmanager
def worker_info(number: int, n_workers: int, seed: int, dataset: object) -> Iterator[None]:
    """`torch.utils.data.get_worker_info()` returns this within the block."""
    kept = torchs._worker_info
    torchs._worker_info = torchs.WorkerInfo(id=number, num_workers=n_workers, seed=seed, dataset=dataset)
    try:
        yield
    finally:
        torchs._worker_info = kept
