"""The tiny run: the script is really trained, for as many steps as it declares, and its weights are handed over.

Every step is held to the bill at this size: its tokens, its operations and, in some steps drawn from the seed, what it
holds in memory and leaves there. In these, weights have to go where the loss falls. Nothing is evaluated here;
`loss_of` is for whoever judges, on sentences that training never saw.
"""

from __future__ import annotations

import contextlib
import gc
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.capstone.alike import check_step
from labkit.capstone.bill import Bill
from labkit.capstone.broken import RuleBroken
from labkit.capstone.cards import Card, on_cards
from labkit.capstone.cost import Costs
from labkit.capstone.descent import Descent
from labkit.capstone.given import as_given
from labkit.capstone.half import fast_half
from labkit.capstone.held import held
from labkit.capstone.language import drawn_from, evaluation
from labkit.capstone.left import left_bytes, newly_made
from labkit.capstone.machine import MACHINES, Machine
from labkit.capstone.model import FUSED, Decoder
from labkit.capstone.real import RealRun
from labkit.capstone.script import Script, load
from labkit.capstone.size import TINY

N_WATCHED = 20
"""Steps of a run whose memory is measured, and of which is seen where the weights go."""
SLACK_BYTES = 4096
"""A step may hold so much more than is billed: a dozen tensors of one number each, and the like."""
_HALF = re.compile(r"\bfloat16\b|\.\s*half\b")


@dataclass(frozen=True)
class Trained:
    """weights: by name, in float32."""

    seed: int
    weights: Mapping[str, Tensor] = field(repr=False)


def train_tiny(script: Script, seed: int, small: Bill, machine: Machine | None = None) -> Trained:
    """Train the tiny model on the language of this seed. small: the script's bill at this size.

    Raises what the script raises, and RuleBroken (`broken`) where a step is not what was billed.
    """
    machine = machine or MACHINES[script.machine]
    with as_given(), newly_made():
        if machine.n_cards == 1:
            return _trained(script, seed, small, None)
        return on_cards(lambda card: _trained(script, seed, small, card), machine.n_cards)[0]


def _trained(script: Script, seed: int, small: Bill, card: Card | None) -> Trained:
    setup, step = load(script)
    run = RealRun(seed, card)
    later = range(1, script.steps)
    watched = set(random.Random(seed).sample(later, min(N_WATCHED, len(later))))
    torch.manual_seed(drawn_from(seed, f"what card {run.rank} draws"))
    descent = Descent()
    with fast_half() if _HALF.search(script.text) else contextlib.nullcontext():
        costs = Costs()
        run._put("_costs", costs)
        with costs:
            state = setup(run)
        run._check_weights()
        check_step(None, 0, costs.operations, small, run.world_size)
        for number in range(script.steps):
            costs = Costs()
            run._put("_costs", costs)
            before = _weights(run) if number in watched and run.rank == 0 else None
            with held(costs) if number in watched else contextlib.nullcontext() as seen, costs:
                taken = run._one_step(step, state, number)
            check_step(number, taken, costs.operations, small, run.world_size)
            if seen is not None and seen.most_bytes > small.held_bytes + SLACK_BYTES:
                raise RuleBroken(
                    f"step {number} of training holds {seen.most_bytes:,} bytes; at this size "
                    f"{small.held_bytes:,} are billed",
                    "parked",
                )
            if before is not None:
                descent.look(before, _weights(run), run._sentences)
                del before
                _check_left(run, number, small)
    run._check_weights()
    if watched and run.rank == 0:
        descent.check()
    return Trained(seed, _weights(run))


def _weights(run: RealRun) -> dict[str, Tensor]:
    """Copies by name, in float32."""
    return {name: one.detach().float().clone() for name, one in run._weights.items()}


def _check_left(run: RealRun, number: int, small: Bill) -> None:
    """After a step there is what the bill has after one, and of the other cards at most what they hold at once."""
    most = small.kept_bytes + (run.world_size - 1) * small.held_bytes + run.world_size * SLACK_BYTES
    if left_bytes() > most:
        gc.collect()
        if (left := left_bytes()) > most:
            text = f"after step {number} of training {left:,} bytes are held; at this size {most:,} are billed"
            raise RuleBroken(text, "parked")


def loss_of(weights: Mapping[str, Tensor], seed: int) -> float:
    """The mean loss in nats per token of these weights on the language's evaluation sentences, in float32.

    Raises ValueError where they are not the tiny model's.
    """
    model = Decoder(TINY, FUSED)
    try:
        model.load_state_dict(dict(weights))
    except RuntimeError as error:
        raise ValueError("these are not the weights of the game's model") from error
    both = evaluation(seed, TINY.vocab, TINY.seq_len)
    with torch.no_grad():
        return F.cross_entropy(model(both[:, :-1]).flatten(0, 1), both[:, 1:].flatten()).item()
