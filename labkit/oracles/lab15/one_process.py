"""Lab 15: the same training in one process, by PyTorch, and as the usual mistakes would have it. For 15-ddp."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm

from labkit.compare import compare
from labkit.exercises.lab15.ddp import LEARNING_RATE, Job, Net, build
from labkit.oracles.hints import once
from labkit.spec import CaseRun, Tolerance

CLOSE = Tolerance(atol=2e-5, rtol=1e-4)
"""A few steps in float32, whose sums run in another order."""
BUFFERS = ("temperature", "n_seen", "gain")
Mistake = str
"""None of the names below means that all is well."""
MISTAKES = (
    "sums",
    "clips first",
    "clips what is left",
    "never clips",
    "never talks",
    "own weights",
    "own parameters",
    "own buffers",
    "own gain",
    "blocks not averaged",
    "only blocks averaged",
    "divides twice",
    "adds to its own",
    "clips values",
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


def as_in_one_process(run: CaseRun) -> str | None:
    """Parameters and buffers of every rank are those of one process that had the whole batch."""
    model = whole_batch(run)
    names = [name for name, _ in model.named_parameters()]
    wanted = {name: value.detach() for name, value in (*model.named_parameters(), *model.named_buffers())}
    for rank, got in enumerate(run.got["ranks"]):
        named = {**dict(zip(names, got["parameters"], strict=True)), **{name: got[name] for name in BUFFERS}}
        if found := compare(wanted, named, CLOSE):
            place = f"{found.path}{list(found.index) if found.index else ''}"
            steps = f"{run.case.n_steps} step{'s' * (run.case.n_steps != 1)}"
            return f"after {steps} rank {rank} has {found.got} at {place}, and one process has {found.expected}"
    return None


@once
def replicas_with(run: CaseRun[Job], mistake: Mistake) -> list[list[Tensor]]:
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
                clip_grads_with_norm_([p for p in own if p in _sent_by_finish(model)], case.max_norm, norm)
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
    if mistake in ("clips first", "clips what is left", "never clips", "clips values"):
        groups = []
    if mistake == "clips values":
        clip_grad_value_(parameters, model.case.max_norm)
    for group in groups:
        norm = get_total_norm([one.grad for one in group])
        clip_grads_with_norm_(group, model.case.max_norm, norm)
        if mistake == "always scales":
            for one in group:
                one.grad *= max(model.case.max_norm / norm, 1.0)


def _sent_by_finish(model: Net) -> set[torch.nn.Parameter]:
    """What no hook sends: the buckets from the first one on that lacks a gradient."""
    bucket, n_bytes, late = [], 0, False
    found: set[torch.nn.Parameter] = set()
    for parameter in reversed(list(model.parameters())):
        if n_bytes >= model.case.cap_bytes:
            found.update(bucket if late else ())
            bucket, n_bytes = [], 0
        bucket.append(parameter)
        late |= parameter.grad is None
        n_bytes += parameter.nbytes
    return found | set(bucket)


def _start(mistake: Mistake, parts: list[dict[str, Any]], rank: int) -> dict[str, Any]:
    first, own = parts[0], parts[rank]
    return {
        "parameters": (own if mistake in ("own weights", "own parameters") else first)["parameters"],
        "temperature": (own if mistake in ("own weights", "own buffers") else first)["temperature"],
        "n_seen": first["n_seen"],
        "gain": (own if mistake in ("own weights", "own buffers", "own gain") else first)["gain"],
    }


def _average(mistake: Mistake, models: list[Net]) -> None:
    divisor = {"sums": 1, "divides twice": len(models) ** 2}.get(mistake, len(models))
    gradients = [_in_order(mistake, model) for model in models]
    blocks = {id(parameter) for model in models for parameter in model.blocks.parameters()}
    for same in zip(*gradients, strict=True):
        if mistake == ("blocks not averaged" if id(same[0]) in blocks else "only blocks averaged"):
            continue
        total = torch.stack([torch.zeros_like(p) if p.grad is None else p.grad for p in same]).sum(0)
        for parameter in same:
            own = parameter.grad if mistake == "adds to its own" and parameter.grad is not None else 0.0
            parameter.grad = total / divisor + own


def _in_order(mistake: Mistake, model: Net) -> list[torch.nn.Parameter]:
    """The parameters, or for "mixes" as they get ready: of crossed layers, the one that is called last comes first."""
    named = dict(model.named_parameters())
    if mistake == "mixes" and model.rank % 2:
        last = model.case.n_crossed - 1
        other = {"left": "right", "right": "left"} | {f"crossed.{i}": f"crossed.{last - i}" for i in range(last + 1)}
        return [named[_renamed(name, other)] for name in named]
    return list(named.values())


def _renamed(name: str, other: dict[str, str]) -> str:
    layer, _, leaf = name.rpartition(".")
    return f"{other.get(layer, layer)}.{leaf}"
