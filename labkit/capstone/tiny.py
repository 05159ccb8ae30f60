"""The tiny run: the script is really trained, for as many steps as it declares, and its weights are handed over.

Some steps are looked at, drawn from the seed: which operations they dispatch. Nothing is evaluated here; `loss_of` is
for whoever judges, on sentences that training never saw.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.capstone.cards import Card, on_cards
from labkit.capstone.cost import Costs, Step
from labkit.capstone.half import fast_half
from labkit.capstone.language import evaluation
from labkit.capstone.machine import MACHINES, Machine
from labkit.capstone.model import FUSED, Decoder
from labkit.capstone.real import RealRun
from labkit.capstone.run import RuleBroken
from labkit.capstone.script import Script, load
from labkit.capstone.size import TINY

N_LOOKED_AT = 20
"""Steps of a run whose operations are listed."""
_HALF = re.compile(r"\bfloat16\b|\.\s*half\b")


@dataclass(frozen=True)
class Trained:
    """weights: by name, in float32. sequences: that each step took, over all cards. looked_at: steps, and their
    operations."""

    seed: int
    weights: Mapping[str, Tensor] = field(repr=False)
    sequences: tuple[int, ...] = field(repr=False)
    looked_at: Mapping[int, tuple[Step, ...]] = field(default_factory=dict, repr=False)


def train_tiny(script: Script, seed: int, machine: Machine | None = None, look_at: int = N_LOOKED_AT) -> Trained:
    """Train the tiny model on the language of this seed. Raises what the script raises, RuleBroken among it."""
    machine = machine or MACHINES[script.machine]
    if machine.n_cards == 1:
        return _trained(script, seed, look_at, None)
    return on_cards(lambda card: _trained(script, seed, look_at, card), machine.n_cards)[0]


def _trained(script: Script, seed: int, look_at: int, card: Card | None) -> Trained:
    setup, step = load(script)
    run = RealRun(seed, card)
    # The first step makes an optimizer's states, and is billed no more than here.
    later = range(1, script.steps)
    chosen = set(random.Random(seed).sample(later, min(look_at, len(later))))
    sequences, looked_at = [], {}
    torch.manual_seed(seed + run.rank)
    with fast_half() if _HALF.search(script.text) else contextlib.nullcontext():
        state = setup(run)
        if run._model is None:
            raise RuleBroken("the script never asked for run.model(): there is nothing that it trains")
        for number in range(script.steps):
            costs = Costs()
            run._put("_costs", costs)
            with costs if number in chosen else contextlib.nullcontext():
                sequences.append(run._one_step(step, state, number) * run.world_size)
            if number in chosen:
                looked_at[number] = tuple(costs.operations)
    weights = {name: value.detach().float().clone() for name, value in run._model.state_dict().items()}
    return Trained(seed, weights, tuple(sequences), looked_at)


def loss_of(weights: Mapping[str, Tensor], seed: int) -> float:
    """The mean loss in nats per token of these weights on the language's evaluation sentences, in float32.

    Raises RuntimeError where they are not the tiny model's.
    """
    model = Decoder(TINY, FUSED)
    model.load_state_dict(dict(weights))
    both = evaluation(seed, TINY.vocab, TINY.seq_len)
    with torch.no_grad():
        return F.cross_entropy(model(both[:, :-1]).flatten(0, 1), both[:, 1:].flatten()).item()
