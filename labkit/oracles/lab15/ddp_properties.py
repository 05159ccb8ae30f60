"""Lab 15: what is true of any data parallel training besides its weights: gradients there and gone, buckets, time."""

from __future__ import annotations

import torch

from labkit.exercises.lab15.ddp import Net
from labkit.oracles.lab15.ddp_costs import (
    least_seconds,
)
from labkit.spec import CaseRun


def every_gradient_there(run: CaseRun) -> str | None:
    """At the optimizer's step every parameter has a gradient, be it zero. One rank alone has nothing to average."""
    if run.case.n_ranks == 1:
        return None
    return _on_some_rank(run, "without_grad", "has no .grad when the optimizer steps")


every_gradient_there.hint = (
    "finish() puts the average into .grad of every parameter, zeros included. An optimizer leaves out a parameter "
    "whose .grad is None, so with momentum or weight decay it would stop moving."
)


def no_gradient_left(run: CaseRun) -> str | None:
    """After a step no parameter has a gradient."""
    return _on_some_rank(run, "left", "still has a gradient after train_step")


no_gradient_left.hint = (
    "train_step clears the gradients at its end: `.grad` of a step that is over takes memory during the next forward "
    "pass, and adds up with the next gradient."
)


def _on_some_rank(run: CaseRun, what: str, says: str) -> str | None:
    for rank, got in enumerate(run.got["ranks"]):
        if names := got[what]:
            return f"{names[0]} {says}, on rank {rank}"
    return None


def buckets_let_go(run: CaseRun) -> str | None:
    """At the end no more buckets are held than one step has."""
    for rank, got in enumerate(run.got["ranks"]):
        most = len(got["calls"]["bytes"]) // run.case.n_steps
        if got["n_held"] > most:
            return f"after {run.case.n_steps} steps rank {rank} still holds {got['n_held']} buckets of {most} a step"
    return None


buckets_let_go.hint = (
    "The list of started all-reduces grows from step to step, and each entry keeps a bucket of gradients in memory: "
    "empty it in finish()."
)


def identical(run: CaseRun) -> str | None:
    """All ranks hold the same bits."""
    first, *others = (got["parameters"] for got in run.got["ranks"])
    for rank, parameters in enumerate(others, 1):
        if not all(torch.equal(one, other) for one, other in zip(first, parameters, strict=True)):
            return f"the weights of rank 0 and rank {rank} are close, but not the same bits"
    return None


def takes_its_time(run: CaseRun) -> str | None:
    """The clock of the network has seen the backward passes."""
    least_s, seconds = least_seconds(run.case), run.measured["seconds"]
    if seconds < least_s * (1 - 1e-6):
        return (
            f"broadcast and backward passes take at least {1000 * least_s:.0f} ms, and all was over in "
            f"{1000 * seconds:.0f} ms"
        )
    return None


def well_filled(run: CaseRun) -> str | None:
    """No bucket takes another parameter after it has reached its cap."""
    case = run.case
    most = case.cap_bytes + max(parameter.nbytes for parameter in Net(case, 0).parameters())
    for got in run.got["ranks"]:
        largest = max(got["calls"]["bytes"], default=0)
        if largest >= most:
            return f"a bucket of {largest:,} bytes: with a cap of {case.cap_bytes:,} it closes below {most:,}"
    return None


well_filled.hint = (
    "Close a bucket as soon as its gradients have reached the cap, begin the next, and send gradients in their own "
    "dtype."
)
