"""Lab 18: what holds of a training step over stages: one process's loss, gradients and weights, and little is kept."""

from __future__ import annotations

import math

import torch

from labkit.compare import compare
from labkit.exercises.lab18.pipeline_step import Steps
from labkit.oracles.lab18.one_process import first_grads, names_of, place_of_tied, trained
from labkit.oracles.lab18.step_conditions import CLOSE, got_grads, shown
from labkit.spec import CaseRun


def loss_is_right(run: CaseRun[Steps]) -> str | None:
    """A property: the last rank returns the loss of each step."""
    wanted, losses = trained(run)[0], run.got["ranks"][-1]["losses"]
    for step, (right, got) in enumerate(zip(wanted, losses, strict=True), 1):
        if got is None or not math.isclose(right, got, rel_tol=1e-4, abs_tol=1e-5):
            told = "None" if got is None else f"{got:.6g}"
            return f"in step {step} the last rank returned the loss {told}, and one process has {right:.6g}"
    return None


def loss_has_no_graph(run: CaseRun[Steps]) -> str | None:
    """A property: what the last rank returns does not keep anything of the step alive."""
    if run.got["ranks"][-1]["has_graph"]:
        return "the loss that the last rank returned is part of a graph"
    return None


loss_has_no_graph.hint = (
    "The loss that is returned was added up from tensors that autograd follows, so it keeps a part of all their "
    "graphs. Add up out.detach(), or out.item()."
)


def grads_are_right(run: CaseRun[Steps]) -> str | None:
    """A property: after the first step every parameter has the gradient of one process."""
    for rank, (got, right) in enumerate(zip(got_grads(run), shown(run, first_grads(run)), strict=True)):
        for name, mine, wanted in zip(names_of(run, rank), got, right, strict=True):
            if mine is None:
                return f"{name} of rank {rank} has no gradient after the step"
            if found := compare(wanted, mine, CLOSE):
                where = f"{name}.grad{list(found.index) if found.index else ''} of rank {rank}"
                return f"{where} is {found.got}, and one process has {found.expected}"
    return None


def tied_are_alike(run: CaseRun[Steps]) -> str | None:
    """A property: after all steps both copies of the embedding have the same bits."""
    if run.case.n_ranks == 1:
        return None
    last = run.case.n_ranks - 1
    copies = [run.got["ranks"][rank]["weights"][place_of_tied(run, rank)] for rank in (0, last)]
    if torch.equal(*copies):
        return None
    apart = float((copies[0] - copies[1]).abs().max())
    return f"after {run.case.n_steps} steps the embeddings of rank 0 and rank {last} are up to {apart:.2g} apart"


tied_are_alike.hint = (
    "Both copies of the embedding need the same gradient, to the bit: the sum of what rank 0 and the last rank found."
)


def weights_are_right(run: CaseRun[Steps]) -> str | None:
    """A property: after all steps the weights are those of one process."""
    for rank, (one, right) in enumerate(zip(run.got["ranks"], shown(run, trained(run)[1]), strict=True)):
        for name, mine, wanted in zip(names_of(run, rank), one["weights"], right, strict=True):
            if found := compare(wanted, mine, CLOSE):
                where = f"{name}{list(found.index) if found.index else ''} of rank {rank}"
                return f"after {run.case.n_steps} steps {where} is {found.got}, and in one process {found.expected}"
    return None


def keeps_no_more(run: CaseRun[Steps]) -> str | None:
    """A property: no rank keeps the activations of more micro-batches than its order has on their way."""
    for rank, one in enumerate(run.got["ranks"]):
        most = run.case.most_alive(rank)
        if one["alive"] > most:
            return (
                f"rank {rank} kept the activations of {one['alive']} micro-batches at once, and in its order at most "
                f"{most} are between F and B"
            )
    return None


keeps_no_more.hint = (
    "Run the passes in the order that is given, and free a micro-batch in its backward pass: remove its tensors from "
    "wherever you keep them, and do not ask for retain_graph."
)
