"""Lab 15: the same training in one process, by PyTorch, and as the usual mistakes would have it. For 15-ddp."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_, clip_grads_with_norm_, get_total_norm

from labkit.exercises.lab15.ddp import LEARNING_RATE, Job, Net, build
from labkit.oracles.hints import once
from labkit.spec import CaseRun

Mistake = str
"""None of the names below means that all is well."""
MISTAKES = (
    "sums",
    "clips first",
    "clips what is left",
    "never clips",
    "never talks",
    "own weights",
    "own buffers",
    "mixes",
    "adds up",
    "clips one by one",
    "always scales",
)


@once
def whole_batch(run: CaseRun[Job]) -> Net:
    """One model, trained on the mean of all ranks' losses."""
    case = run.case
    parts = run.tree["ranks"]
    model = build(case, parts[0], 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    for step in range(case.n_steps):
        loss = 0
        for model.rank, part in enumerate(parts):
            loss = loss + F.cross_entropy(model(part["tokens"][step]), part["targets"][step]) / case.n_ranks
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), case.max_norm)
        optimizer.step()
    return model


def replicas_with(mistake: Mistake, run: CaseRun[Job]) -> list[list[Tensor]]:
    """The parameters of every rank at the end, had all ranks made this mistake and no other."""
    case = run.case
    parts = run.tree["ranks"]
    models = [build(case, _start(mistake, parts, rank), rank) for rank in range(case.n_ranks)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=LEARNING_RATE) for model in models]
    for step in range(case.n_steps):
        for model, part in zip(models, parts):
            if mistake != "adds up":
                model.zero_grad()
            F.cross_entropy(model(part["tokens"][step]), part["targets"][step]).backward()
            if mistake == "clips first":
                clip_grad_norm_(model.parameters(), case.max_norm)
            if mistake == "clips what is left":
                own = [p for p in model.parameters() if p.grad is not None]
                norm = get_total_norm([p.grad for p in own])
                clip_grads_with_norm_([p for p in own if p in _last_bucket(model)], case.max_norm, norm)
        if mistake != "never talks":
            _average(mistake, models)
        for model, optimizer in zip(models, optimizers):
            _clip(mistake, model)
            optimizer.step()
    return [[parameter.detach() for parameter in model.parameters()] for model in models]


def _clip(mistake: Mistake, model: Net) -> None:
    """Clip the averaged gradients, which some mistakes do otherwise and some not at all."""
    parameters = [one for one in model.parameters() if one.grad is not None]
    groups = [[one] for one in parameters] if mistake == "clips one by one" else [parameters]
    if mistake in ("clips first", "clips what is left", "never clips"):
        groups = []
    for group in groups:
        norm = get_total_norm([one.grad for one in group])
        clip_grads_with_norm_(group, model.case.max_norm, norm)
        if mistake == "always scales":
            for one in group:
                one.grad *= max(model.case.max_norm / norm, 1.0)


def _last_bucket(model: Net) -> set[torch.nn.Parameter]:
    """What only finish() sends: the bucket of the layer that nobody calls."""
    bucket, n_bytes = [], 0
    for parameter in reversed(list(model.parameters())):
        if n_bytes >= model.case.cap_bytes:
            bucket, n_bytes = [], 0
        bucket.append(parameter)
        n_bytes += parameter.nbytes
    return set(bucket)


def _start(mistake: Mistake, parts: list[dict[str, Any]], rank: int) -> dict[str, Any]:
    first, own = parts[0], parts[rank]
    return {
        "parameters": (own if mistake == "own weights" else first)["parameters"],
        "temperature": (own if mistake in ("own weights", "own buffers") else first)["temperature"],
        "n_seen": first["n_seen"],
    }


def _average(mistake: Mistake, models: list[Net]) -> None:
    gradients = [_in_order(mistake, model) for model in models]
    for same in zip(*gradients, strict=True):
        total = torch.stack([torch.zeros_like(p) if p.grad is None else p.grad for p in same]).sum(0)
        for parameter in same:
            parameter.grad = total.clone() if mistake == "sums" else total / len(models)


def _in_order(mistake: Mistake, model: Net) -> list[torch.nn.Parameter]:
    """The parameters, or for "mixes" as they get ready: of the crossed layers, who is called last is ready first."""
    named = dict(model.named_parameters())
    if mistake == "mixes" and model.case.odd_ranks_swap and model.rank % 2:
        names = {"left": "right", "right": "left"}
        return [named[".".join(names.get(part, part) for part in name.split("."))] for name in named]
    return list(named.values())
