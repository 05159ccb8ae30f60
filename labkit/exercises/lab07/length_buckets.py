"""Lab 07: batches of texts of about one length, in an order that is still random, and their padding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from labkit.exercises.generators import another_process, global_generators
from labkit.spec import Answer, Case, Exercise

N_EPOCHS = 3
OTHER_SEED = 1009
SPREAD = 1.0
"""Of the logarithm of a text's length."""
MOST_BATCHES = 10_000
"""After so many an endless sampler is left."""
COLLATED = (12, 9, 6, 3)
"""Tokens of the texts that are collated, at most: of four long texts, too, three need padding."""


@dataclass(frozen=True)
class Texts(Case):
    """n texts of this median length, in batches of batch_size; n_done batches are drawn before the state is taken."""

    n: int
    batch_size: int
    median: int = 60
    n_done: int = 3
    seed: int = 0

    @property
    def n_more(self) -> int:
        """Batches between the first state and the second: as many again, if that does not end the epoch."""
        return max(0, min(self.n_done, math.ceil(self.n / self.batch_size) - self.n_done - 1))


def texts(case: Texts, gen: torch.Generator) -> dict[str, Any]:
    """lengths: of all texts. batch: tokens of some texts to be collated; the last one of the first text is 0, which is
    a token like any other.
    """
    lengths = torch.exp(math.log(case.median) + SPREAD * torch.randn(case.n, generator=gen)).long().clamp(1, 1024)
    shown = [min(most, length) for most, length in zip(COLLATED, lengths.tolist(), strict=False)]
    batch = [torch.randint(0, 30_000, (length,), generator=gen) for length in shown]
    batch[0][-1] = 0
    return {"lengths": lengths, "batch": batch}


def drive(ans, case: Texts, tree: dict, stage) -> dict[str, Any]:
    """epochs[e]: the batches of epoch e. repeated: those of a second iteration over the last epoch. again: those of the
    last epoch by a new sampler. elsewhere: by a new one in another process. other: by one with another seed. resumed:
    what a new sampler yields with the state after n_done batches of epoch 1, from which the old one has gone on and
    been asked for its state again. resumed_twice: what another one yields with the state of such a new one after n_more
    batches. resumed_at_once: what one yields with the state of such a new one before its first. resumed_again: what a
    new one yields in a second iteration, after the one that went on. reset: the last epoch by the old one, which has
    not ended epoch 1. reset_loaded: by a new one that has loaded the state. left: a second iteration over epoch 1,
    after one that was left early. over: what a new one yields with the state after the end of epoch 1. n_batches:
    len(), n_batches_loaded: that of a new one that has loaded the state. collated: the tensors of one batch. changed:
    whose global generators go on from another state after an epoch.
    """
    lengths = tree["lengths"].tolist()

    def sampler(seed: int):
        return ans.LengthBatches(list(lengths), case.batch_size, seed=seed)

    def batches(of) -> list[list[int]]:
        return [[int(index) for index in batch] for batch in islice(of, MOST_BATCHES)]

    mine, epochs = sampler(case.seed), []
    with global_generators(7) as changed:
        for epoch in range(N_EPOCHS):
            mine.set_epoch(epoch)
            epochs.append(batches(mine))

    def last_epoch(of) -> list[list[int]]:
        of.set_epoch(N_EPOCHS - 1)
        return batches(of)

    def resumed(state: dict[str, Any]):
        new = sampler(case.seed)
        new.load_state_dict(state)
        return new

    def state_after(n: int, of) -> dict[str, Any]:
        """Its state after so many batches; then it goes on, and is asked for its next state."""
        going = iter(of)
        list(islice(going, n))
        state = of.state_dict()
        next(going, None)
        of.state_dict()
        return state

    def in_epoch_1():
        new = sampler(case.seed)
        new.set_epoch(1)
        return new

    stopped, left, ended = in_epoch_1(), in_epoch_1(), in_epoch_1()
    state = state_after(case.n_done, stopped)
    state_after(case.n_done, left)
    batches(ended)
    going_on = resumed(state)
    with another_process(ans.LengthBatches):
        elsewhere = last_epoch(sampler(case.seed))
    return {
        "epochs": epochs,
        "repeated": batches(mine),
        "n_batches": len(mine),
        "n_batches_loaded": len(resumed(state)),
        "again": last_epoch(sampler(case.seed)),
        "elsewhere": elsewhere,
        "other": last_epoch(sampler(case.seed + OTHER_SEED)),
        "resumed": batches(going_on),
        "resumed_again": batches(going_on),
        "resumed_at_once": batches(resumed(resumed(state).state_dict())),
        "resumed_twice": batches(resumed(state_after(case.n_more, resumed(state)))),
        "reset": last_epoch(stopped),
        "reset_loaded": last_epoch(resumed(state)),
        "left": batches(left),
        "over": batches(resumed(ended.state_dict())),
        "collated": dict(ans.collate([text.clone() for text in tree["batch"]])),
        "changed": changed,
    }


LENGTH_BUCKETS = Exercise(
    id="07-length-buckets",
    title="Batches of one length, in random order",
    points=4,
    minutes=40,
    difficulty=2,
    answers=(Answer("LengthBatches"), Answer("collate")),
    public=(
        Texts(1600, 8),
        Texts(1003, 16, seed=3, n_done=10),
        Texts(50, 8, n_done=0),
        Texts(5, 8, n_done=1),
    ),
    inputs=texts,
    drive=drive,
)
