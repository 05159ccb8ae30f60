"""Lab 15: what is true of an optimizer that averages: one process's weights, for one call in a step."""

from __future__ import annotations

import math

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab15.ddp import Net
from labkit.exercises.lab15.optimizer_wrapper import Wrapped
from labkit.oracles.lab15.ddp import identical
from labkit.oracles.lab15.ddp_mistakes import ended_as_with, skipped_stands_still
from labkit.oracles.lab15.one_process import CLOSE, whole_batch
from labkit.spec import Budget, CaseRun, Hint, Oracle


def as_in_one_process(run: CaseRun[Wrapped]) -> str | None:
    """The parameters of every rank are those of one process that had the whole batch."""
    wanted = {name: value.detach() for name, value in whole_batch(run).named_parameters()}
    for rank, got in enumerate(run.got["ranks"]):
        if found := compare(wanted, dict(zip(wanted, got["parameters"], strict=True)), CLOSE):
            place = f"{found.path}{list(found.index) if found.index else ''}"
            return (
                f"after {run.case.n_steps} step{'s' * (run.case.n_steps != 1)} rank {rank} has {found.got} at {place}, "
                f"and one process has {found.expected}"
            )
    return None


def sizes(case: Wrapped) -> list[int]:
    return [parameter.nbytes for parameter in Net(case, 0).parameters()]


def buffer_sizes(case: Wrapped) -> list[int]:
    return [buffer.nbytes for buffer in Net(case, 0).buffers()]


def most_calls(run: CaseRun[Wrapped]) -> int:
    """A broadcast for every tensor at the start, and one all-reduce in each step."""
    return len(sizes(run.case)) + len(buffer_sizes(run.case)) + run.case.n_steps


def most_bytes(run: CaseRun[Wrapped]) -> float:
    """The root of a tree sends every tensor to ⌈log₂ n⌉ others; a ring's chunks are rounded up to whole numbers."""
    n, total = run.case.n_ranks, sum(sizes(run.case))
    at_start = math.ceil(math.log2(n)) * (total + sum(buffer_sizes(run.case)))
    return at_start + run.case.n_steps * 2 * (n - 1) * (total / n + 4) + 4


def sent_in_a_step(run: CaseRun[Wrapped]) -> float:
    """How many times all gradients of rank 0 went through an all-reduce, on average over the steps."""
    sent = run.got["ranks"][0]["calls"]["bytes"]
    return sum(sent) / (run.case.n_steps * sum(sizes(run.case)))


def one_group_sent(run: CaseRun[Wrapped]) -> bool:
    """In each step the all-reduces had the bytes of one of the two parameter groups."""
    groups: dict[bool, int] = {True: 0, False: 0}
    for name, parameter in Net(run.case, 0).named_parameters():
        groups[name.startswith("blocks")] += parameter.nbytes
    sent = sum(run.got["ranks"][0]["calls"]["bytes"])
    return sent in [run.case.n_steps * n_bytes for n_bytes in groups.values()]


def nothing_moved(run: CaseRun[Wrapped]) -> bool:
    start = run.tree["ranks"][0]["parameters"]
    return all(torch.equal(a, b) for a, b in zip(start, run.got["ranks"][0]["parameters"], strict=True))


def in_words(run: CaseRun[Wrapped]) -> str:
    """What a case asks."""
    case = run.case
    how = f"wrapped_step(..., max_norm={case.max_norm:.3g})" if case.clips else "backward() and step()"
    text = (
        f"{case.n_ranks} rank{'s' * (case.n_ranks != 1)}, {case.n_steps} step{'s' * (case.n_steps != 1)} of {how}, "
        "two parameter groups"
    )
    if case.odd_ranks_skip is not None:
        text += f"; odd ranks leave out block {case.odd_ranks_skip}"
    return text


OPTIMIZER_WRAPPER = Oracle(
    id="15-optimizer-wrapper",
    call=in_words,
    judge=(inputs_untouched, as_in_one_process, identical),
    errors={
        "all_reduce: rank 0 gives float32 of shape": "The ranks' tensors differ in length. A parameter whose .grad is "
        "None on one rank may have one on another: put zeros in its place.",
        "broadcast: rank 0 gives src 0": "All ranks name the same source: the weights come from rank 0.",
    },
    axis="numbers of ranks, layers without a gradient, and step() without wrapped_step",
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes: each gradient is averaged once in a step. After synchronize(), step() does not average "
            "again.",
        ),
        Budget(
            "collectives",
            most_calls,
            "Too many calls: put all gradients into one flat tensor, so that a step pays the latency once.",
        ),
    ),
    diagnose=(
        Hint(
            nothing_moved,
            "No weight has moved: step() also calls the step() of the optimizer that it wraps.",
        ),
        Hint(
            ended_as_with("own parameters"),
            "Every rank kept the weights that it started with. Broadcast them from rank 0 in __init__.",
        ),
        Hint(
            ended_as_with("never talks"),
            "Every rank trained by itself: the averages never came back into .grad, or step() did not average.",
        ),
        Hint(
            ended_as_with("blocks not averaged", "only blocks averaged"),
            "Only one parameter group was averaged: optimizer.param_groups is a list, here of two.",
        ),
        Hint(
            ended_as_with("clips first"),
            "Each rank clipped its own gradient, and the average came after that. wrapped_step calls synchronize() "
            "between the backward pass and the clipping.",
        ),
        Hint(
            ended_as_with("sums"),
            "The gradients are sums over the ranks: divide by the number of ranks, or reduce with op='avg'.",
        ),
        Hint(
            ended_as_with("never clips"),
            "Nothing was clipped: clip_grad_norm_ comes between synchronize() and step().",
        ),
        Hint(
            ended_as_with("clips one by one"),
            "Each parameter, or each group, was clipped by its own norm. One call of clip_grad_norm_ gets all "
            "parameters.",
        ),
        Hint(
            ended_as_with("adds up"),
            "The gradients of earlier steps are still in .grad: wrapped_step clears them at its end.",
        ),
        Hint(
            one_group_sent,
            "Only one parameter group was averaged: optimizer.param_groups is a list, here of two.",
        ),
        Hint(
            skipped_stands_still,
            "A block without a gradient on a rank did not move there, and moved on the others. synchronize() puts the "
            "average into .grad where it is None, too.",
        ),
        Hint(
            lambda run: run.case.n_steps > 1 and 0 < sent_in_a_step(run) < 0.75,
            "Some steps did not average: after a step, the next one has to average again. Remember only until the end "
            "of step() that synchronize() has been called.",
        ),
    ),
)
