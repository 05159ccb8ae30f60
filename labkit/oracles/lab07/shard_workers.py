"""Lab 07: what goes wrong where workers of several ranks share samples out."""

from __future__ import annotations

from collections.abc import Callable

from labkit.exercises.lab07.shard_workers import Grid
from labkit.oracles.lab07.shares import (
    ENOUGH,
    alike,
    different_numbers,
    drawn_twice,
    equal_shares,
    is_split,
    none_twice,
    other_order,
    other_samples,
    random_order,
    same_left_out,
    same_order,
    same_ranks,
    seeds_alike,
    seen,
    share,
    total,
    when_asked,
    workers_of,
)
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle


def times_too_many(factor: Callable[[Grid], int]) -> Callable[[CaseRun[Grid]], object]:
    """A diagnosis: a sample comes as often as there are workers, ranks or both. CANNOT_TELL where that is once."""

    def when(run: CaseRun[Grid]) -> object:
        times = factor(run.case)
        if times <= 1:
            return CANNOT_TELL if is_split(run) else False
        return all(set(counts.values()) == {times} for counts in seen(run))

    return when


def uneven(run: CaseRun[Grid]) -> object:
    if run.case.n % run.case.world_size == 0 and is_split(run):
        return CANNOT_TELL
    return len(set(total(run))) > 1


def fills_up(run: CaseRun[Grid]) -> object:
    """Some samples come twice. CANNOT_TELL where there are fewer than it takes to fill all ranks up."""
    case = run.case
    if case.n < case.world_size and not is_split(run):
        return CANNOT_TELL
    wanted = -(-case.n // case.world_size)
    if case.n % case.world_size == 0 and is_split(run):
        return CANNOT_TELL
    return set(total(run)) == {wanted} and any(max(counts.values(), default=0) > 1 for counts in seen(run))


def dealt_in_one_go(run: CaseRun[Grid]) -> object:
    """Nothing is missing but what has to be, and ranks get more than others. CANNOT_TELL where all goes well."""
    if is_split(run):
        return CANNOT_TELL
    return sum(total(run)) == share(run.case) * run.case.world_size and len(set(total(run))) > 1


def drops_for_workers(run: CaseRun[Grid]) -> object:
    case = run.case
    wanted = case.n // (case.world_size * workers_of(case)) * workers_of(case)
    return CANNOT_TELL if wanted == share(case) and is_split(run) else set(total(run)) == {wanted}


def own_orders(run: CaseRun[Grid]) -> object:
    """Right numbers of samples, some twice. CANNOT_TELL where one worker has them all, or where they are few."""
    if run.case.n < ENOUGH or run.case.world_size * workers_of(run.case) == 1:
        return CANNOT_TELL
    return equal_shares(run) is None and any(max(counts.values()) > 1 for counts in seen(run))


def blocks_rounded_up(run: CaseRun[Grid]) -> object:
    """Each rank's samples are split into equal blocks, a shorter one, and nothing. CANNOT_TELL where that is even."""
    if equal_shares(run) is None:
        return CANNOT_TELL if is_split(run) else False
    wanted, workers = share(run.case), workers_of(run.case)
    block = -(-wanted // workers)
    sizes = [min(block, max(0, wanted - at * block)) for at in range(workers)]
    return all([len(samples) for samples in ranks] == sizes for epoch in run.got["epochs"] for ranks in epoch)


def loads_for_nothing(run: CaseRun[Grid]) -> object:
    if run.case.world_size * workers_of(run.case) == 1:
        return CANNOT_TELL
    return equal_shares(run) is None and all(
        max(counts.values(), default=1) == 1 and run.got["n_loads"][epoch] > counts.total()
        for epoch, counts in enumerate(seen(run))
    )


def drawn_alike(*fixed: str, can_tell: Callable[[Grid], bool] = lambda case: True) -> Callable[..., object]:
    """A diagnosis: two places that differ in other things than those of `fixed`, and are equal in these, drew alike."""

    def when(run: CaseRun[Grid]) -> object:
        if not can_tell(run.case) or share(run.case) == 0:
            return CANNOT_TELL
        return is_split(run) and any(
            one != other and all(getattr(one, name) == getattr(other, name) for name in fixed)
            for one, other in alike(run)
        )

    return when


def both(*conditions: Callable[[CaseRun], object]) -> Callable[[CaseRun], object]:
    """All of them hold. CANNOT_TELL where one of them cannot tell."""

    def when(run: CaseRun) -> object:
        answers = [condition(run) for condition in conditions]
        return CANNOT_TELL if CANNOT_TELL in answers else all(answers)

    return when


workers_alike = drawn_alike("epoch", "rank", can_tell=lambda case: case.n_workers > 1 and share(case) > 1)


ranks_alike = drawn_alike("epoch", "worker", can_tell=lambda case: case.world_size > 1)


def from_the_process(run: CaseRun[Grid]) -> object:
    """Other numbers in another run, and the same on all ranks. CANNOT_TELL where the main process loads or nobody."""
    if run.case.n_workers == 0 or share(run.case) == 0:
        return CANNOT_TELL
    others = is_split(run) and not other_samples(run) and run.got["again"] != run.got["epochs"][-1]
    return others and (run.case.world_size == 1 or bool(ranks_alike(run)))


epochs_alike = drawn_alike("rank", "worker")


def by_sample(run: CaseRun[Grid]) -> object:
    """A sample has the same numbers whoever loads it, in every epoch."""
    return is_split(run) and all(sample == same for (_, sample), (_, same) in drawn_twice(run)) and bool(alike(run))


def in_a_long_epoch(when: Callable[[CaseRun[Grid]], object]) -> Callable[[CaseRun[Grid]], object]:
    """A diagnosis of the order, about which a short epoch says nothing."""
    return lambda run: CANNOT_TELL if run.case.n < ENOUGH and is_split(run) else when(run)


SHARD_WORKERS = Oracle(
    id="07-shard-workers",
    judge=(equal_shares, none_twice, when_asked, different_numbers, random_order),
    errors={
        "'NoneType' object has no attribute": "Without workers (num_workers=0) the main process loads, and "
        "get_worker_info() returns None.",
        "cannot unpack non-iterable NoneType": "Without workers (num_workers=0) the main process loads, and "
        "get_worker_info() returns None.",
        "has no attribute 'epoch'": "set_epoch may never be called: the dataset begins in epoch 0, so set that in "
        "__init__.",
    },
    diagnose=(
        Hint(
            times_too_many(lambda case: workers_of(case) * case.world_size),
            "Every worker of every rank yields the whole dataset. Each of them begins as a copy: what makes it "
            "different is its rank, and the id of get_worker_info().",
        ),
        Hint(
            times_too_many(workers_of),
            "Every worker of a rank yields all of the rank's samples, so each comes as often as there are workers. "
            "get_worker_info() says which worker this is, and of how many.",
        ),
        Hint(
            times_too_many(lambda case: case.world_size),
            "Every rank yields the whole dataset. get_worker_info() knows the workers of its own rank only: deal the "
            "samples to the ranks first, and a rank's to its workers.",
        ),
        Hint(
            dealt_in_one_go,
            "Some ranks get more samples than others, although the rest is left out: the workers of all ranks are "
            "dealt to in one go. Deal the samples to the ranks first, and a rank's to its workers.",
        ),
        Hint(
            uneven,
            "Some ranks get more samples than others. The one with a batch more waits forever in an all-reduce that "
            "the others do not call. Leave the last n % world_size samples of the epoch out.",
        ),
        Hint(
            fills_up,
            "The ranks are filled up with samples that come twice. Here the rest is left out instead: every rank gets "
            "n // world_size.",
        ),
        Hint(
            drops_for_workers,
            "More samples are left out than have to be, so that all workers get equally many. Only the ranks have to:"
            " deal n // world_size samples to each rank, and these to its workers, of whom some may get one more.",
        ),
        Hint(
            own_orders,
            "The numbers of samples are right, but some come several times and others never: workers or ranks deal "
            "from orders of their own. The order that is dealt from has to be the same everywhere, so its seed may "
            "depend on seed and epoch alone.",
        ),
        Hint(
            blocks_rounded_up,
            "The workers of a rank take blocks of one size, rounded up, so the last of them get what is left. "
            "Samples [worker::n_workers] of the rank's are shared evenly.",
        ),
        Hint(
            loads_for_nothing,
            "Samples are loaded that this worker does not yield. Choose the numbers first, then load.",
        ),
        Hint(
            lambda run: CANNOT_TELL if when_asked(run) is None else is_split(run),
            "A worker loads its whole share before it yields the first sample: training waits for it, and a share of a "
            "large dataset does not fit into memory. A list is made as a whole before `yield from` begins. Load one "
            "sample, yield it, then load the next.",
        ),
        Hint(
            lambda run: is_split(run) and any(one == other for one, other in alike(run)),
            "Samples of one worker are augmented alike: the generator is made anew for each of them, with the same "
            "seed. Make it once at the start of __iter__, or let its seed depend on the sample, too.",
        ),
        Hint(
            both(workers_alike, drawn_alike("rank", "worker", can_tell=lambda case: case.n_workers > 0)),
            "All workers draw the same numbers, and in each epoch the same ones again. A generator that is made in "
            "__init__ is copied into every worker, each time in the state that it had there. Make it in __iter__.",
        ),
        Hint(
            workers_alike,
            "All workers of a rank draw the same numbers. The worker's id belongs in the seed.",
        ),
        Hint(
            from_the_process,
            "A run that goes on in epoch 2 has other numbers than one that came there from epoch 0, so they come from "
            "the process: from a global generator, torch.initial_seed() or the seed of get_worker_info(). These differ "
            "from run to run, and worker 0 has the same on every rank whose training began with the same manual_seed. "
            "Make a torch.Generator, and seed it from seed, epoch, rank and worker, and from nothing else.",
        ),
        Hint(
            ranks_alike,
            "The ranks draw the same numbers. Each of them seeds its generator in the same way, and DataLoader gives "
            "its workers the same seeds on every rank whose training began with the same manual_seed. The rank "
            "belongs in the seed.",
        ),
        Hint(
            lambda run: by_sample(run) or epochs_alike(run),
            "Every epoch draws the same numbers, so no sample is ever augmented in another way. The epoch belongs in "
            "the seed.",
        ),
        Hint(
            lambda run: is_split(run) and bool(alike(run)),
            "Two workers have the same seed. In a sum, a higher epoch or rank and a lower worker's id come to the "
            "same number. Make one number of all four that no other four numbers give, such as hash((seed, epoch, "
            "rank, worker)).",
        ),
        Hint(
            in_a_long_epoch(lambda run: is_split(run) and same_order(run)),
            "Every epoch has the same order. Shuffle with a generator that is seeded from seed and epoch.",
        ),
        Hint(
            in_a_long_epoch(lambda run: CANNOT_TELL if run.case.world_size == 1 else same_ranks(run)),
            "A rank sees the same samples in every epoch, because each shuffles only its own share. Shuffle all "
            "samples first, then deal.",
        ),
        Hint(
            in_a_long_epoch(
                lambda run: (
                    CANNOT_TELL if run.case.n % run.case.world_size == 0 else is_split(run) and same_left_out(run)
                )
            ),
            "The samples that are left out are the same in every epoch, so no run ever sees them. Shuffle all n "
            "samples first, and leave out the last ones of that order.",
        ),
        Hint(
            in_a_long_epoch(lambda run: is_split(run) and other_order(run)),
            "The seed changes nothing about the order. It belongs in the seed of the order's generator, together with"
            " the epoch.",
        ),
        Hint(
            lambda run: CANNOT_TELL if share(run.case) == 0 else is_split(run) and seeds_alike(run),
            "Another seed augments with the same random numbers. It belongs in the seed of the augmentations' "
            "generator as well.",
        ),
        Hint(
            lambda run: CANNOT_TELL if run.got["again"] == run.got["epochs"][-1] else is_split(run),
            "A run that goes on in epoch 2 has other numbers than one that came there from epoch 0. Seeds may depend "
            "on nothing but seed, epoch, rank and worker: not on what was drawn before, and not on the seed of "
            "get_worker_info() or hash() of a text, which differ from run to run.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if run.got["repeated"] in (None, run.got["epochs"][-1])
                else run.got["again"] == run.got["epochs"][-1]
            ),
            "Without workers the dataset is the one that was iterated before, and not a new copy. Iterated twice "
            "without set_epoch, it yields two different epochs. Only set_epoch may change the epoch.",
        ),
        Hint(
            lambda run: bool(run.got["changed"]) if run.case.n_workers == 0 else CANNOT_TELL,
            "Without workers the dataset runs in the main process, where other code draws from the global generators "
            "as well, such as the model's dropout from torch's. Use a torch.Generator of your own.",
        ),
    ),
    call=lambda run: (
        f"WorkerSamples(load, n={run.case.n}, rank, world_size={run.case.world_size}, seed={run.case.seed}), "
        + (f"with {run.case.n_workers} workers on each rank" if run.case.n_workers else "without workers")
    ),
    axis="other numbers of samples, ranks and workers, and ranks that get no sample",
)
