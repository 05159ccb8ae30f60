"""Lab 07: what is true of samples that workers of several ranks load.

What the usual mistakes look like stands beside the oracle.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import NamedTuple

from labkit.exercises.lab07.shard_workers import Grid
from labkit.oracles.hints import once
from labkit.spec import CaseRun

ENOUGH = 20
"""From so many samples on, two shuffles that agree are no accident."""


class Place(NamedTuple):
    """Where a sample was yielded: `Place(epoch=0, rank=1, worker=0)`."""

    epoch: int
    rank: int
    worker: int


def yielded(run: CaseRun[Grid]) -> Iterator[tuple[Place, int, int]]:
    """Place, sample and drawn number of all that the three epochs yield."""
    for epoch, ranks in enumerate(run.got["epochs"]):
        for rank, workers in enumerate(ranks):
            for worker, samples in enumerate(workers):
                for index, drawn in samples:
                    yield Place(epoch, rank, worker), index, drawn


def of_rank(workers: list[list]) -> list[int]:
    """The samples of a rank, worker after worker."""
    return [index for samples in workers for index, _ in samples]


@once
def seen(run: CaseRun[Grid]) -> list[Counter]:
    """How often each sample comes in each epoch."""
    return [Counter(index for workers in ranks for index in of_rank(workers)) for ranks in run.got["epochs"]]


def share(case: Grid) -> int:
    """What each rank gets."""
    return case.n // case.world_size


def equal_shares(run: CaseRun[Grid]) -> str | None:
    """Every rank gets as many samples, and its workers share them evenly."""
    wanted = share(run.case)
    for epoch, ranks in enumerate(run.got["epochs"]):
        for rank, workers in enumerate(ranks):
            sizes = [len(samples) for samples in workers]
            if sum(sizes) != wanted:
                return f"in epoch {epoch} rank {rank} gets {sum(sizes)} samples, and should get {wanted}"
            if max(sizes) - min(sizes) > 1:
                return f"in epoch {epoch} the workers of rank {rank} get {sizes} samples, and could share them evenly"
    return None


def none_twice(run: CaseRun[Grid]) -> str | None:
    """No sample comes twice in an epoch, and none is loaded for nothing."""
    for epoch, counts in enumerate(seen(run)):
        if strange := [index for index in counts if not 0 <= index < run.case.n]:
            return f"sample {strange[0]} in epoch {epoch}; there are samples 0 to {run.case.n - 1}"
        if twice := [index for index, count in counts.items() if count > 1]:
            return f"in epoch {epoch} sample {twice[0]} comes {counts[twice[0]]} times"
        if run.got["n_loads"][epoch] != counts.total():
            return f"in epoch {epoch} load was called {run.got['n_loads'][epoch]} times for {counts.total()} samples"
    return None


def when_asked(run: CaseRun[Grid]) -> str | None:
    """A sample is loaded when it is asked for, or one before."""
    n_yielded, n_loaded = run.got["started"]
    if n_loaded <= 2 * n_yielded:
        return None
    who = f"each of the {run.case.n_workers} workers" if run.case.n_workers else "the main process"
    return f"to yield one sample in {who} of rank 0, load was called {n_loaded} times"


@once
def alike(run: CaseRun[Grid]) -> list[tuple[Place, Place]]:
    """Pairs of places that drew the same number."""
    return [(one, other) for (one, _), (other, _) in drawn_twice(run)]


@once
def drawn_twice(run: CaseRun[Grid]) -> list[tuple[tuple[Place, int], tuple[Place, int]]]:
    """Pairs of a place and a sample whose numbers are the same."""
    found: dict[int, list[tuple[Place, int]]] = defaultdict(list)
    for place, index, drawn in yielded(run):
        found[drawn].append((place, index))
    return [pair for of_number in found.values() for pair in combinations(of_number[:40], 2)]


def different_numbers(run: CaseRun[Grid]) -> str | None:
    """No two samples are augmented with the same random numbers."""
    if not alike(run):
        return None
    one, other = alike(run)[0]
    if one == other:
        return f"two samples of one worker ({_where(one)}) have the same random numbers"
    return f"a sample of {_where(one)} and one of {_where(other)} have the same random numbers"


def _where(place: Place) -> str:
    return f"epoch {place.epoch}, rank {place.rank}, worker {place.worker}"


def orders(run: CaseRun[Grid]) -> list[list[list[int]]]:
    """The samples of each rank in each epoch."""
    return [[of_rank(workers) for workers in ranks] for ranks in run.got["epochs"]]


def left_out(run: CaseRun[Grid]) -> list[frozenset[int]]:
    """The samples that nobody gets: in each epoch, and in the last one with another seed."""
    found = [*seen(run), Counter(index for workers in run.got["other"] for index in of_rank(workers))]
    return [frozenset(range(run.case.n)).difference(counts) for counts in found]


def same_left_out(run: CaseRun[Grid]) -> bool:
    """Four epochs that leave the same out are no accident."""
    return run.case.n >= ENOUGH and run.case.n % run.case.world_size > 0 and len(set(left_out(run))) == 1


def seeds_alike(run: CaseRun[Grid]) -> bool:
    """With another seed the last epoch draws numbers that it drew with this one."""
    first, second = (
        {drawn for workers in epoch for samples in workers for _, drawn in samples}
        for epoch in (run.got["epochs"][-1], run.got["other"])
    )
    return bool(first & second)


def random_order(run: CaseRun[Grid]) -> str | None:
    """Each epoch has an order of its own, other samples on each rank, and depends on seed and epoch alone."""
    got, case = run.got, run.case
    if case.n >= ENOUGH:
        if same_order(run):
            return "two epochs have the same order"
        if same_ranks(run):
            return "each rank gets the same samples in every epoch, only in another order"
        if any(_steps_alike(order) for ranks in orders(run) for order in ranks):
            return "a rank gets its samples in the order of the dataset"
        if same_left_out(run):
            return f"every epoch leaves the same samples out: {sorted(left_out(run)[0])}"
        if got["other"] == got["epochs"][-1]:
            return "another seed gives the same samples with the same random numbers"
        if other_order(run):
            return "another seed gives the same order"
    if seeds_alike(run):
        return "another seed gives samples the same random numbers"
    if other_samples(run):
        return "a new run with set_epoch(2) does not yield the samples that the old one yielded in epoch 2"
    if got["again"] != got["epochs"][-1]:
        return "a new run with set_epoch(2) has other random numbers than the old one had in epoch 2"
    if got["repeated"] not in (None, got["epochs"][-1]):
        return "without workers, epoch 2 is iterated once more, and yields other samples or random numbers"
    if got["changed"]:
        return f"without workers, loading changes the state of the global generator of {got['changed'][0]}"
    return None


def other_samples(run: CaseRun[Grid]) -> bool:
    """A run that begins with the last epoch yields other samples there."""
    return _samples(run.got["again"]) != _samples(run.got["epochs"][-1])


def _samples(epoch: list) -> list[list[list[int]]]:
    return [[[index for index, _ in samples] for samples in workers] for workers in epoch]


def same_order(run: CaseRun[Grid]) -> bool:
    return any(one == other for one, other in combinations(orders(run), 2))


def same_ranks(run: CaseRun[Grid]) -> bool:
    return run.case.world_size > 1 and len({str([sorted(of) for of in ranks]) for ranks in orders(run)}) == 1


def other_order(run: CaseRun[Grid]) -> bool:
    return _samples(run.got["other"]) == _samples(run.got["epochs"][-1])


def _steps_alike(order: list[int]) -> bool:
    steps = Counter(b - a for a, b in pairwise(order))
    return len(order) > 4 and max(steps.values()) > len(order) // 2


def is_split(run: CaseRun[Grid]) -> bool:
    return equal_shares(run) is None and none_twice(run) is None


def total(run: CaseRun[Grid]) -> list[int]:
    """How many samples each rank gets in the first epoch."""
    return [len(of_rank(workers)) for workers in run.got["epochs"][0]]


def workers_of(case: Grid) -> int:
    return max(case.n_workers, 1)
