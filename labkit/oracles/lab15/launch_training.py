"""Lab 15: the training of 15-launch in one process, as nobody disturbs it and as the usual slips would have it.

It uses torch's own sampler and optimizer. What a slip is called in words, and whether an answer has it, is `launch`'s.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DistributedSampler

from labkit.exercises.lab15.launch import InterruptedTraining
from labkit.exercises.lab15.torchrun import N_RANKS
from labkit.oracles.hints import once
from labkit.spec import CaseRun

ATOL, RTOL = 1e-5, 1e-4
"""float32: the two ranks' gradients are averaged in another order than here."""


@dataclass(frozen=True)
class Course:
    """A training in one process. at: by step, what a checkpoint after that step holds."""

    losses: list[float]
    at: dict[int, dict[str, Any]]


def course(run: CaseRun[InterruptedTraining], begin: dict | None = None, slip: str = "") -> Course:
    """The training from the checkpoint `begin` (from the inputs' own, or from nothing, without it) to its end.

    slip: "model", "momentum" or "generators" forgotten at the beginning; "rank 0's generator" for all; a "seed without
    rank"; the order of epoch 0 at the first step ("set_epoch"), or in every epoch ("never set_epoch"); on the curve the
    "own loss" of rank 0, the "summed loss" or the "loss after the update"; gradients "never averaged", or "summed
    gradients".
    """
    return run.memo(_played, slip) if begin is None else _played(run, slip, begin)


def _played(run: CaseRun[InterruptedTraining], slip: str, begin: dict | None = None) -> Course:
    case = run.case
    job = run.tree["job"]
    begin = begin or run.tree["begun"] or {"step": 0, "model": job["model"], "losses": []}
    model = nn.Linear(case.n_features, 1)
    weights = job["model"] if slip == "model" else begin["model"]
    model.load_state_dict({name: value.clone() for name, value in weights.items()})
    replicas = [model, copy.deepcopy(model)] if slip == "never averaged" else [model] * N_RANKS
    parameters = [parameter for replica in dict.fromkeys(replicas) for parameter in replica.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=job["lr"], momentum=job["momentum"])
    if "momentum" in begin and slip != "momentum":
        for parameter, buffer in zip(parameters, itertools.cycle(begin["momentum"])):
            optimizer.state[parameter]["momentum_buffer"] = buffer.clone()
    generators = [
        torch.Generator().manual_seed(job["seed"] + rank * (slip != "seed without rank")) for rank in range(N_RANKS)
    ]
    if "generators" in begin and slip != "generators":
        for rank, generator in enumerate(generators):
            generator.set_state(begin["generators"][0 if slip == "rank 0's generator" else rank])
    first, losses, at = begin["step"], list(begin["losses"]), {}
    for step in range(first, case.n_steps):
        epoch, within = divmod(step, case.steps_per_epoch)
        if slip == "never set_epoch" or (slip == "set_epoch" and step == first):
            epoch = 0
        batches = []
        for rank, generator in enumerate(generators):
            x, y = _batch(case, job, rank, epoch, within)
            batches.append((x + job["noise"] * torch.randn(x.shape, generator=generator), y))

        def each(batches=batches) -> list[Tensor]:
            return [mse_loss(replica(x), y) for replica, (x, y) in zip(replicas, batches, strict=True)]

        before = each()
        optimizer.zero_grad()
        (sum(before) / (1 if slip in ("never averaged", "summed gradients") else N_RANKS)).backward()
        optimizer.step()
        shown = each() if slip == "loss after the update" else before
        divisor = 1 if slip == "summed loss" else N_RANKS
        losses.append(float((shown[0] if slip == "own loss" else sum(shown) / divisor).detach()))
        at[step + 1] = {
            "step": step + 1,
            "model": {name: value.clone() for name, value in model.state_dict().items()},
            "momentum": [optimizer.state[parameter]["momentum_buffer"].clone() for parameter in model.parameters()],
            "generators": [generator.get_state() for generator in generators],
            "losses": list(losses),
        }
    return Course(losses, at)


def _batch(case: InterruptedTraining, job: dict, rank: int, epoch: int, within: int) -> tuple[Tensor, Tensor]:
    sampler = DistributedSampler(job["x"], num_replicas=N_RANKS, rank=rank, seed=job["seed"])
    sampler.set_epoch(epoch)
    rows = list(sampler)[within * case.batch : (within + 1) * case.batch]
    return job["x"][rows], job["y"][rows]


def close(got: Tensor, expected: Tensor) -> bool:
    """Equal within float32's rounding, in shape too."""
    return got.shape == expected.shape and torch.allclose(got.double(), expected.double(), rtol=RTOL, atol=ATOL)


def flat(tensors: Any) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def first_departure(right: Course, got: dict) -> int | None:
    """The first step, from 0, whose loss is not that of the undisturbed training."""
    losses = torch.tensor(right.losses, dtype=torch.float64)
    apart = ~((got["losses"] - losses).abs() <= ATOL + RTOL * losses.abs())
    return int(apart.nonzero()[0]) if bool(apart.any()) else None


@once
def from_other_weights(run: CaseRun[InterruptedTraining]) -> bool:
    """Whether losses before the first kill are wrong, and other first weights, and nothing else, explain them.

    The weights after some steps follow from the first ones by an affine map. It is read off from trainings that begin
    with zeros and with unit vectors, and inverted at the checkpoint of the first kill.
    """
    case, left = run.case, run.got["left"][0]
    step = case.kept_at[0]
    if case.begun_steps or first_departure(course(run), run.got) not in range(step):
        return False

    def begun_with(weights: Tensor) -> Course:
        model = {"weight": weights[None, :-1].float(), "bias": weights[-1:].float()}
        return course(run, {"step": 0, "model": model, "losses": []})

    def weights_then(weights: Tensor) -> Tensor:
        return flat(begun_with(weights).at[step]["model"].values()).double()

    n = case.n_features + 1
    offset = weights_then(torch.zeros(n))
    columns = [weights_then(unit) - offset for unit in torch.eye(n)]
    first = torch.linalg.solve(torch.stack(columns, 1), left["model"].double() - offset)
    losses = torch.tensor(begun_with(first).losses[:step], dtype=torch.float64)
    return torch.allclose(left["losses"][:step], losses, rtol=1e-2, atol=1e-3)


@once
def began_the_epoch_again(run: CaseRun[InterruptedTraining]) -> bool:
    """Whether the first loss after the first resumption is that of the first batch of the checkpoint's epoch, be it
    counted as the epoch's first step or as the next one."""
    case = run.case
    first = case.begun_steps or case.kept_at[0]
    start = first // case.steps_per_epoch * case.steps_per_epoch
    state = run.tree["begun"] if case.begun_steps else course(run).at[first]
    again = course(run, {**state, "step": start, "losses": state["losses"][:start]}).losses[start]
    number = 0 if case.begun_steps else 1
    left, wanted = run.got["left"], torch.tensor([again], dtype=torch.float64)
    losses = left[number]["losses"] if len(left) > number else run.got["losses"]
    return start < first and any(close(losses[place : place + 1], wanted) for place in (start, first))
