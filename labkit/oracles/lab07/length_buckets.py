"""Lab 07: what is true of batches by length, and what the usual mistakes look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain

import torch
from torch.nn.utils.rnn import pad_sequence

from labkit.exercises.lab07.length_buckets import MOST_BATCHES, Texts
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

IGNORED = -100
MOST_PADDING = 0.2
"""Of such lengths, pools of 50 batches leave 7 to 16 %, pools of 10 batches 22 to 42 %, random batches 65 %."""
ENOUGH_BATCHES = 40
"""From so many on, order and padding are no accident."""


def each_once(run: CaseRun[Texts]) -> str | None:
    """Every epoch has every text once, in as few batches as there can be, and len() says how many."""
    case, n_batches = run.case, -(-run.case.n // run.case.batch_size)
    for number, epoch in enumerate(run.got["epochs"]):
        if len(epoch) >= MOST_BATCHES:
            return f"epoch {number} does not end"
        counts = Counter(chain.from_iterable(epoch))
        absent = [index for index in range(case.n) if index not in counts]
        twice = [index for index, count in counts.items() if count > 1]
        if absent:
            return f"epoch {number}: {_some(absent)} in no batch"
        if twice:
            return f"epoch {number}: {_some(twice)} in more than one batch"
        if any(not 0 < len(batch) <= case.batch_size for batch in epoch):
            return f"epoch {number} has a batch that is empty or larger than {case.batch_size}"
        if len(epoch) != n_batches:
            return f"epoch {number} has {len(epoch)} batches; {case.n} texts make {n_batches}"
    if run.got["n_batches"] != n_batches:
        return f"len() is {run.got['n_batches']}; an epoch has {n_batches} batches"
    return None


@once
def padding(run: CaseRun[Texts]) -> float:
    """The share of padding in all batches of the first epoch."""
    lengths = [[int(run.tree["lengths"][index]) for index in batch] for batch in run.got["epochs"][0]]
    filled = sum(max(batch) * len(batch) for batch in lengths)
    return 1 - sum(map(sum, lengths)) / filled


def little_padding(run: CaseRun[Texts]) -> str | None:
    """Texts of about one length share a batch."""
    if is_small(run) or padding(run) <= MOST_PADDING:
        return None
    return f"{padding(run):.0%} of what the batches hold is padding; {MOST_PADDING:.0%} is allowed"


def is_small(run: CaseRun[Texts]) -> bool:
    """Too few batches to tell an order from an accident."""
    return run.case.n < ENOUGH_BATCHES * run.case.batch_size


@once
def steepness(run: CaseRun[Texts]) -> float:
    """The correlation of a batch's place in the epoch with its length, -1 to 1: the largest of any epoch."""
    found = []
    for epoch in run.got["epochs"]:
        longest = torch.tensor([float(run.tree["lengths"][batch].max()) for batch in epoch]).argsort().argsort()
        places = torch.arange(float(len(epoch)))
        found.append(abs(torch.corrcoef(torch.stack([places, longest.float()]))[0, 1].item()))
    return max(found)


@once
def recurring(run: CaseRun[Texts]) -> float:
    """The share of the batches of one epoch that the next one has as well, whatever the order in them."""
    first, second = ({frozenset(batch) for batch in epoch} for epoch in run.got["epochs"][:2])
    return len(first & second) / len(first)


def random_order(run: CaseRun[Texts]) -> str | None:
    """The order of the batches says nothing of their length, and epochs have other batches in another order."""
    got = run.got
    if not is_small(run):
        if steepness(run) > 0.5:
            return "the batches come sorted by length"
        if got["epochs"][0] == got["epochs"][1]:
            return "two epochs have the same batches in the same order"
        if recurring(run) > 0.5:
            return f"{recurring(run):.0%} of the batches of epoch 0 come again in epoch 1, with the same texts in them"
        if got["other"] == got["epochs"][-1]:
            return "another seed gives the same batches in the same order"
    if got["again"] != got["epochs"][-1]:
        return "a new sampler with set_epoch(2) does not yield what the old one yielded in epoch 2"
    if got["changed"]:
        return f"after three epochs the global random numbers of {got['changed'][0]} go on from another state"
    return None


def goes_on(run: CaseRun[Texts]) -> str | None:
    """From a state on, the rest of the epoch follows."""
    rest, found = run.got["epochs"][1][run.case.n_done :], run.got["resumed"]
    if found == rest:
        return None
    place = f"after {run.case.n_done} batches of epoch 1"
    if len(found) != len(rest):
        return f"with the state {place} a new sampler yields {len(found)} batches; {len(rest)} are left"
    return f"with the state {place} a new sampler yields other batches than are left"


@once
def true_batch(run: CaseRun[Texts]) -> dict[str, torch.Tensor]:
    def padded(value: int, of: list[torch.Tensor]) -> torch.Tensor:
        return pad_sequence(of, batch_first=True, padding_value=value)

    batch = run.tree["batch"]
    ones = [torch.ones_like(text) for text in batch]
    return {"input_ids": padded(0, batch), "attention_mask": padded(0, ones), "labels": padded(IGNORED, batch)}


def collated(run: CaseRun[Texts]) -> str | None:
    """The three tensors of a batch."""
    got = run.got["collated"]
    for name, wanted in true_batch(run).items():
        found = got.get(name)
        if not isinstance(found, torch.Tensor):
            return f"collate returns no tensor {name!r}"
        if found.shape != wanted.shape:
            return f"{name} has shape {tuple(found.shape)}, and should have {tuple(wanted.shape)}"
        if len(wrong := (found != wanted).nonzero()):
            row, at = wrong[0].tolist()
            return f"{name}[{row}, {at}] is {found[row, at]}, and should be {wanted[row, at]}"
        if found.dtype != torch.int64:
            return f"{name} is {str(found.dtype).removeprefix('torch.')}, and should be int64"
    return None


def _some(indices: list[int]) -> str:
    return f"text {indices[0]} is" if len(indices) == 1 else f"{len(indices)} texts are"


def drops_tail(run: CaseRun[Texts]) -> object:
    """What is missing is less than a batch. CANNOT_TELL where the batches divide the texts."""
    case = run.case
    if case.n % case.batch_size == 0:
        return CANNOT_TELL
    return all(case.n - sum(map(len, epoch)) == case.n % case.batch_size for epoch in run.got["epochs"])


def of_enough_batches(when: Callable[[CaseRun[Texts]], object]) -> Callable[[CaseRun[Texts]], object]:
    """A diagnosis of the order, which a case with few batches says nothing about."""
    return lambda run: CANNOT_TELL if is_small(run) and each_once(run) is None else when(run)


def as_padding(name: str, value: int) -> Callable[[CaseRun[Texts]], object]:
    """A diagnosis: where there is padding, this tensor has this value. CANNOT_TELL of a batch without padding."""

    def when(run: CaseRun[Texts]) -> object:
        right = true_batch(run)
        wrong = torch.where(right["attention_mask"] == 0, value, right[name])
        return CANNOT_TELL if torch.equal(wrong, right[name]) else torch.equal(run.got["collated"][name], wrong)

    return when


LENGTH_BUCKETS = Oracle(
    id="07-length-buckets",
    judge=(each_once, little_padding, random_order, goes_on, collated),
    diagnose=(
        Hint(
            drops_tail,
            "The last texts are dropped, because they do not fill a batch. Keep them in a batch that is smaller.",
        ),
        Hint(
            of_enough_batches(lambda run: each_once(run) is None and steepness(run) > 0.5),
            "The batches come in the order of their length, so the model sees short texts first and long ones last. "
            "Shuffle the list of batches once they are cut.",
        ),
        Hint(
            of_enough_batches(lambda run: each_once(run) is None and padding(run) > 0.5),
            "The texts in a batch have all kinds of lengths. Sort before the batches are cut, and shuffle whole "
            "batches afterwards.",
        ),
        Hint(
            of_enough_batches(lambda run: little_padding(run) is not None),
            "A pool has too few texts to choose from. Sort some 50 batches' worth of texts at a time.",
        ),
        Hint(
            of_enough_batches(lambda run: run.got["epochs"][0] == run.got["epochs"][1]),
            "Every epoch is the same. Seed the generator with a number from the seed and from the epoch.",
        ),
        Hint(
            of_enough_batches(lambda run: recurring(run) > 0.5),
            "The same texts meet in every epoch; only the order of the batches changes. Shuffle all texts first, cut "
            "them into pools, and sort within each pool.",
        ),
        Hint(
            of_enough_batches(lambda run: run.got["other"] == run.got["epochs"][-1]),
            "The seed changes nothing. Seed the generator with a number from the seed and from the epoch.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if run.got["again"] == run.got["epochs"][-1]
                else each_once(run) is None and little_padding(run) is None
            ),
            "The order depends on what was drawn before. A new generator for each epoch, seeded from seed and epoch, "
            "makes any epoch again, in any process.",
        ),
        Hint(
            lambda run: CANNOT_TELL if goes_on(run) is None else run.got["resumed"] == run.got["epochs"][1],
            "The epoch begins again. The state has to hold how many batches were yielded, and the next iteration skips "
            "that many.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if goes_on(run) is None
                else run.case.n_done > 0 and run.got["resumed"] == run.got["epochs"][1][run.case.n_done - 1 :]
            ),
            "One batch comes twice: it had been yielded, and was not counted yet when the state was taken. What stands "
            "behind a yield runs only when the next batch is asked for.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL if goes_on(run) is None else run.got["resumed"] == run.got["epochs"][0][run.case.n_done :]
            ),
            "It goes on at the right place of another epoch. The epoch belongs to the state, too.",
        ),
        Hint(
            lambda run: bool(run.got["changed"]) and each_once(run) is None and little_padding(run) is None,
            "The order comes from a global generator, from which the model's dropout draws as well. Use a "
            "torch.Generator of the sampler's own.",
        ),
        Hint(
            as_padding("labels", 0),
            "The padding has labels, so the loss asks the model to predict padding. Its label is -100.",
        ),
        Hint(
            as_padding("attention_mask", 1),
            "The mask is 1 everywhere, so the tokens attend to the padding. It is 0 there.",
        ),
        Hint(
            lambda run: run.got["collated"]["input_ids"].shape[1] > true_batch(run)["input_ids"].shape[1],
            "The texts are padded beyond the longest text of this batch. A width that is fixed, or that comes from all "
            "texts, is filled with padding nearly everywhere.",
        ),
    ),
    call=lambda run: f"LengthBatches(<{run.case.n:,} lengths>, batch_size={run.case.batch_size}, seed={run.case.seed})",
    axis="other numbers of texts, batch sizes, seeds and places to go on from",
)
