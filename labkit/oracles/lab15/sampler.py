"""Lab 15: what is true of a sampler for ranks, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import chain, pairwise

from torch.utils.data import DistributedSampler

from labkit.exercises.lab15.sampler import Split
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

ENOUGH = 20
"""From so many samples on, two shuffles that agree are no accident."""
ENOUGH_TO_LEAVE_OUT = 400
"""From so many choices of the samples that are left out on, three epochs with the same choice are no accident."""


def counts(epoch: list[list[int]]) -> Counter:
    """How often each index comes, over all ranks."""
    return Counter(chain.from_iterable(epoch))


def torchs(case: Split) -> list[list[int]]:
    """What torch.utils.data.DistributedSampler deals in an epoch. How often each comes counts, not which."""
    return [
        list(DistributedSampler(range(case.n_samples), case.world_size, rank, drop_last=case.drop_last))
        for rank in range(case.world_size)
    ]


def equal_lengths(run: CaseRun) -> str | None:
    """Every rank gets as many as torch's sampler deals, and len() says so."""
    wanted = len(torchs(run.case)[0])
    for epoch in (*run.got["epochs"], run.got["other"]):
        for rank, order in enumerate(epoch):
            if len(order) != wanted:
                return f"rank {rank} gets {len(order)} samples, and should get {wanted}, like every other"
    for rank, length in enumerate(run.got["lengths"]):
        if length != wanted:
            return f"len() of rank {rank}'s sampler is {length}; it yields {wanted} indices"
    return None


def complete(run: CaseRun) -> str | None:
    """Each sample comes once. Where ranks are filled up some come again, and with drop_last a few do not come."""
    case = run.case
    wanted = counts(torchs(case))
    for number, epoch in enumerate(run.got["epochs"]):
        found = counts(epoch)
        if strange := [index for index in found if not 0 <= index < case.n_samples]:
            return f"index {strange[0]} in epoch {number}; there are samples 0 to {case.n_samples - 1}"
        most = max(wanted.values(), default=0)
        often = [index for index in found if found[index] > most]
        absent = [index for index in range(case.n_samples) if index not in found]
        if len(absent) > case.n_samples - len(wanted):
            return f"epoch {number}: {_some(absent)} not seen by any rank"
        if often:
            return f"epoch {number}: {_some(often)} seen {found[often[0]]} times; no more than {most} is needed"
    return None


def shuffled(run: CaseRun) -> str | None:
    """The order is not that of the dataset, changes with epoch and seed, and is the same again for the same epoch."""
    case, got = run.case, run.got
    if got["again"] != got["epochs"][-1]:
        return "iterated a second time in the same epoch, the sampler yields another order"
    if got["resumed"] != got["epochs"][-1]:
        return "a new sampler with set_epoch(2) does not yield what the old one yielded in epoch 2"
    if got["elsewhere"] != got["epochs"][-1]:
        return "in another process, a sampler with set_epoch(2) does not yield what this one yielded in epoch 2"
    if got["seeded"]:
        rank, owner = got["seeded"][0]
        return f"after iterating on rank {rank}, the global random numbers of {owner} go on from another state"
    if len(counts(got["epochs"][0])) < ENOUGH:
        return None
    if any(_steps_alike(order) for epoch in got["epochs"] for order in epoch):
        return "the indices come in the order of the dataset"
    if got["epochs"][0] == got["epochs"][1] or got["epochs"][1] == got["epochs"][2]:
        return "two epochs have the same order"
    if case.world_size > 1 and len({str([sorted(order) for order in epoch]) for epoch in got["epochs"]}) == 1:
        return "each rank gets the same samples in every epoch, only in another order"
    if got["other"] == got["epochs"][0]:
        return "another seed gives the same order"
    if got["other_last"] == got["epochs"][-1]:
        return "another seed gives the same order in epoch 2"
    if always_left_out(run):
        return f"{_some(sorted(always_left_out(run)))} left out in every epoch, and no other"
    return None


def always_left_out(run: CaseRun[Split]) -> set[int]:
    """The samples that no epoch has, where each leaves out just these and there are many to choose from."""
    left_out = [set(range(run.case.n_samples)) - counts(epoch).keys() for epoch in run.got["epochs"]]
    choices = math.comb(run.case.n_samples, len(left_out[0]))
    return left_out[0] if choices >= ENOUGH_TO_LEAVE_OUT and all(one == left_out[0] for one in left_out) else set()


def _steps_alike(order: list[int]) -> bool:
    """Most steps from one index to the next are equal."""
    steps = Counter(b - a for a, b in pairwise(order))
    return len(order) > 4 and max(steps.values()) > len(order) // 2


def _some(indices: list[int]) -> str:
    return f"sample {indices[0]} is" if len(indices) == 1 else f"{len(indices)} samples are"


def fails(holds: Callable, when: Callable[[CaseRun[Split]], object] = lambda run: True) -> Callable[..., bool]:
    """A diagnosis where a property does not hold."""
    return lambda run: holds(run) is not None and when(run)


def lengths(got: dict) -> set[int]:
    """How many samples the ranks got in the first epoch."""
    return {len(order) for order in got["epochs"][0]}


def n_seen(got: dict) -> int:
    """The fewest different samples of an epoch."""
    return min(len(counts(epoch)) for epoch in got["epochs"])


def n_dealt(case: Split) -> int:
    """How many different samples an epoch has to have."""
    return len(counts(torchs(case)))


def overlap(run: CaseRun[Split]) -> object:
    """Some samples come more than once over all ranks and others never. CANNOT_TELL where there is one rank, or where
    so few samples may all come by accident."""
    if run.case.world_size == 1 or n_dealt(run.case) < ENOUGH:
        return CANNOT_TELL
    return complete(run) is not None and n_seen(run.got) < n_dealt(run.case)


SAMPLER = Oracle(
    id="15-sampler",
    call=lambda run: (
        f"ShardSampler(n_samples={run.case.n_samples}, rank, world_size={run.case.world_size}, seed={run.case.seed}, "
        f"drop_last={run.case.drop_last}) for every rank"
    ),
    judge=(equal_lengths, complete, shuffled),
    errors={
        "has no attribute 'epoch'": "set_epoch may never be called: the sampler begins in epoch 0, so set that in "
        "__init__.",
        "cannot be interpreted as an integer": "What the sampler yields is used as an index: yield whole numbers.",
    },
    diagnose=(
        Hint(
            fails(equal_lengths, lambda run: len(lengths(run.got)) > 1),
            "Some ranks get more samples than others. The one with a batch more calls an all-reduce that no other "
            "rank joins, and all wait forever: repeat samples, or drop some, so that all have the same number.",
        ),
        Hint(
            fails(
                equal_lengths,
                lambda run: (
                    not run.case.drop_last
                    and run.case.n_samples % run.case.world_size > 0
                    and lengths(run.got) == {run.case.n_samples // run.case.world_size}
                ),
            ),
            "The rest is dropped, and drop_last is False: repeat some indices from the start until the ranks divide "
            "the number.",
        ),
        Hint(
            fails(
                equal_lengths,
                lambda run: run.case.drop_last and lengths(run.got) == {-(-run.case.n_samples // run.case.world_size)},
            ),
            "With drop_last nothing is repeated: leave out the few samples at the end of the shuffled order that do "
            "not go round.",
        ),
        Hint(
            fails(equal_lengths, lambda run: lengths(run.got) == {run.case.n_samples} and run.case.world_size > 1),
            "Every rank gets the whole dataset: each batch would be seen by all. A rank takes every "
            "world_size-th index.",
        ),
        Hint(
            fails(equal_lengths, lambda run: min(lengths(run.got)) > len(torchs(run.case)[0])),
            "Every rank gets more samples than necessary. If the number of ranks divides that of the samples, none is "
            "repeated: round n_samples / world_size up, and add nothing.",
        ),
        Hint(
            fails(
                equal_lengths, lambda run: len(lengths(run.got)) == 1 and set(run.got["lengths"]) != lengths(run.got)
            ),
            "len() is what one rank yields, not the size of the dataset: the DataLoader and the learning-rate schedule "
            "count their steps by it.",
        ),
        Hint(
            fails(
                complete, lambda run: not set(chain(*map(counts, run.got["epochs"]))) <= set(range(run.case.n_samples))
            ),
            "There is no sample of that number: indices go from 0 to n_samples - 1.",
        ),
        Hint(
            overlap,
            "Some samples are seen by several ranks and others by none: the ranks do not draw the same permutation, or "
            "their shares of it overlap. Seed a generator with the seed and the epoch, the same on all ranks, and only "
            "then take the rank's share.",
        ),
        Hint(
            fails(complete, lambda run: not run.case.drop_last and n_seen(run.got) == n_dealt(run.case)),
            "All samples are there, but some come again too often: fill up from the start of the order, with each "
            "sample once before any comes a third time.",
        ),
        Hint(
            fails(shuffled, lambda run: bool(run.got["seeded"])),
            "Iterating draws from, or seeds, global random numbers, and then dropout is the same on all ranks. Use "
            "a generator of the sampler's own, for instance a `torch.Generator()`.",
        ),
        Hint(
            fails(
                shuffled,
                lambda run: run.got["again"] != run.got["epochs"][-1] or run.got["resumed"] != run.got["again"],
            ),
            "The order depends on what the sampler did before, so a run that resumes from a checkpoint sees another "
            "one. Make and seed the generator anew in __iter__, from the seed and the epoch that set_epoch was last "
            "given.",
        ),
        Hint(
            fails(shuffled, lambda run: run.got["elsewhere"] != run.got["epochs"][-1]),
            "hash() of a text is a different number in each process, so every rank would draw an order of its own. "
            "Make the generator's seed from numbers, the seed and the epoch.",
        ),
        Hint(
            fails(
                shuffled,
                lambda run: run.got["epochs"][0] == run.got["epochs"][1] and run.got["epochs"][0] != run.got["other"],
            ),
            "Every epoch has the same order: what set_epoch is told has to go into the generator's seed.",
        ),
        Hint(
            fails(shuffled, lambda run: any(_steps_alike(order) for epoch in run.got["epochs"] for order in epoch)),
            "The samples come in the order of the dataset, which is often sorted by label: shuffle with "
            "torch.randperm.",
        ),
        Hint(
            fails(
                shuffled,
                lambda run: run.got["other"] == run.got["epochs"][0] and run.got["other_last"] != run.got["epochs"][-1],
            ),
            "In epoch 0 the seed makes no difference, and in later ones it does, as if the two were multiplied: with "
            "seed 0 every epoch would have the same order. Add them, so that neither hides the other.",
        ),
        Hint(
            fails(shuffled, lambda run: run.got["other"] == run.got["epochs"][0]),
            "The seed makes no difference: it belongs in the generator's seed, together with the epoch.",
        ),
        Hint(
            fails(shuffled, lambda run: run.got["other_last"] == run.got["epochs"][-1]),
            "From some epoch on the seed makes no difference: seed and epoch both belong into the generator's seed.",
        ),
        Hint(
            fails(shuffled, always_left_out),
            "The same samples are left out in every epoch. Shuffle all of them, and leave out the end of that order.",
        ),
        Hint(
            fails(shuffled),
            "A rank's samples are the same in every epoch. Shuffle all of them first and take the share afterwards.",
        ),
        Hint(
            fails(complete),
            "Every sample has to come once over all ranks. Look at the indices of all ranks together, sorted.",
        ),
    ),
)
