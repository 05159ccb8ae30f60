"""Lab 07: what is true of batches by length. What the usual mistakes look like stands beside the oracle."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations

import torch
from torch.nn.utils.rnn import pad_sequence

from labkit.exercises.lab07.length_buckets import MOST_BATCHES, Texts
from labkit.oracles.hints import once
from labkit.spec import CaseRun

IGNORED = -100
MOST_PADDING = 0.2
"""Of such lengths, pools of 50 batches leave 7 to 16 %, pools of 10 batches 22 to 42 %, random batches 65 %."""
ENOUGH_BATCHES = 40
"""From so many on, order and padding are no accident."""
MANY_BATCHES = 100
"""From so many on, an epoch has several pools of 50 batches."""
MOST_RECURRING = 0.45
"""Of the pairs of texts that share a batch, again in the next epoch: of pools of 50 batches 0.13 to 0.2, of pools of
100 up to 0.32, of one sort of everything that shuffles texts of one length 0.5 to 0.63.
"""


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
    if run.got["n_batches_loaded"] != n_batches:
        found = run.got["n_batches_loaded"]
        return f"after load_state_dict len() is {found}; an epoch has {n_batches} batches, however far it is"
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
    return max(_correlation(torch.arange(len(epoch)), _by_length(run, epoch)) for epoch in run.got["epochs"])


@once
def likeness(run: CaseRun[Texts]) -> float:
    """The correlation of a batch's length with that of the next one, -1 to 1: the largest of any epoch."""
    ranks = [_by_length(run, epoch) for epoch in run.got["epochs"]]
    return max(_correlation(of_epoch[:-1], of_epoch[1:]) for of_epoch in ranks)


def _by_length(run: CaseRun[Texts], epoch: list[list[int]]) -> torch.Tensor:
    """Of each batch, how many batches of the epoch are shorter."""
    return torch.tensor([int(run.tree["lengths"][batch].max()) for batch in epoch]).argsort().argsort()


def _correlation(one: torch.Tensor, other: torch.Tensor) -> float:
    return abs(torch.corrcoef(torch.stack([one.double(), other.double()]))[0, 1].item())


@once
def recurring(run: CaseRun[Texts]) -> float:
    """The share of the pairs of texts in a batch of one epoch that share one in the next epoch as well."""
    first, second = (
        {frozenset(pair) for batch in epoch for pair in combinations(batch, 2)} for epoch in run.got["epochs"][:2]
    )
    return len(first & second) / len(first)


def meet_again(run: CaseRun[Texts]) -> bool:
    """More than pools explain. Where one pool is nearly the whole epoch, only what is nearly everything tells."""
    has_pools = run.case.n >= MANY_BATCHES * run.case.batch_size
    return recurring(run) > (MOST_RECURRING if has_pools else 0.9)


def random_order(run: CaseRun[Texts]) -> str | None:
    """The order of the batches says nothing of their length, and epochs have other batches in another order."""
    got = run.got
    if not is_small(run):
        if steepness(run) > 0.5:
            return "the batches come sorted by length"
        if likeness(run) > 0.5:
            return "the batches come sorted by length in stretches: each has nearly the length of the one before it"
        if got["epochs"][0] == got["epochs"][1]:
            return "two epochs have the same batches in the same order"
        if meet_again(run):
            return (
                f"of the pairs of texts that share a batch in epoch 0, {recurring(run):.0%} share one in epoch 1 again"
            )
        if got["other"] == got["epochs"][-1]:
            return "another seed gives the same batches in the same order"
    if got["again"] != got["epochs"][-1]:
        return "a new sampler with set_epoch(2) does not yield what the old one yielded in epoch 2"
    if got["elsewhere"] != got["epochs"][-1]:
        return "in another process set_epoch(2) does not yield what epoch 2 yielded"
    if got["repeated"] != got["epochs"][-1]:
        return f"a second iteration over epoch 2 yields {_instead(got['repeated'], got['epochs'][-1])}"
    if got["changed"]:
        return f"after three epochs the global random numbers of {got['changed'][0]} go on from another state"
    return None


def goes_on(run: CaseRun[Texts]) -> str | None:
    """From a state on, the rest of the epoch follows, and from a state of that, the rest of the rest. After the end of
    the epoch nothing is left.
    """
    got, n_done, n_more = run.got, run.case.n_done, run.case.n_more
    if got["resumed"] != rest(run, n_done):
        what = _instead(got["resumed"], rest(run, n_done))
        return f"with the state after {n_done} batches of epoch 1 a new sampler yields {what}"
    if got["resumed_at_once"] != rest(run, n_done):
        what = _instead(got["resumed_at_once"], rest(run, n_done))
        return (
            f"with a state loaded after {n_done} batches of epoch 1, and saved again at once, a new one yields {what}"
        )
    if got["resumed_twice"] != rest(run, n_done + n_more):
        what = _instead(got["resumed_twice"], rest(run, n_done + n_more))
        return f"interrupted after {n_done} batches of epoch 1 and again after {n_more} more, it then yields {what}"
    if got["over"]:
        what = _instead(got["over"], [])
        return f"with the state after the end of epoch 1 a new sampler yields {what}"
    return None


def starts_over(run: CaseRun[Texts]) -> str | None:
    """Whatever does not come right after load_state_dict is a whole epoch, wherever the last one was left."""
    _, epoch_1, epoch_2 = run.got["epochs"]
    n_left = min(run.case.n_done + 1, len(epoch_1))
    for name, wanted, when in (
        ("left", epoch_1, f"after an iteration over epoch 1 that was left after {n_left} batches, the next one yields"),
        ("reset", epoch_2, "set_epoch(2) within epoch 1, and the next iteration yields"),
        ("reset_loaded", epoch_2, "set_epoch(2) right after load_state_dict, and the next iteration yields"),
        ("resumed_again", epoch_1, "the second iteration after load_state_dict yields"),
    ):
        if run.got[name] != wanted:
            return f"{when} {_instead(run.got[name], wanted)}"
    return None


def rest(run: CaseRun[Texts], n_done: int) -> list[list[int]]:
    """The batches of epoch 1 after so many."""
    return run.got["epochs"][1][n_done:]


def one_later(run: CaseRun[Texts], epoch: list[list[int]]) -> list[list[int]]:
    """What is left of an epoch one batch after n_done; all of it if that was the end."""
    n_done = run.case.n_done
    return epoch[n_done + 1 :] if n_done < len(epoch) else epoch


def _instead(found: list[list[int]], wanted: list[list[int]]) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} batches instead of {len(wanted)}"
    return "other batches than it should"


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
