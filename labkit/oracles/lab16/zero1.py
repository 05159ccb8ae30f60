"""Lab 16: what is true where optimizer states are cut: one process's weights, DDP's bytes, an n-th of the states."""

from __future__ import annotations

import math

import torch

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab16.optimizers import STATES, shard_size
from labkit.exercises.lab16.zero1 import ShardedSteps
from labkit.oracles.lab16.one_process import (
    CLOSE,
    Played,
    flat,
    got_flat,
    only_own_part_moves,
    same,
    tail_stands_still,
    trained_as_with,
)
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle


def played(run: CaseRun[ShardedSteps]) -> Played:
    """The start and all gradients; a parameter without a gradient has zeros."""
    case, tree = run.case, run.tree
    grads = [
        [
            flat([torch.zeros_like(g) if k == case.idle else g for k, g in enumerate(part["grads"][step])])
            for part in tree["ranks"]
        ]
        for step in range(case.n_steps)
    ]
    return Played(case.optimizer, flat(tree["params"]), grads)


def as_in_one_process(run: CaseRun[ShardedSteps]) -> str | None:
    """After each step all ranks have the weights of one process that averages the ranks' gradients."""
    right = run.memo(played).right()[0]
    for rank, one in enumerate(run.got["ranks"]):
        for step, got in enumerate(one["after"]):
            wanted = [
                x.view(s) for x, s in zip(right[step].split([math.prod(s) for s in run.case.shapes]), run.case.shapes)
            ]
            if found := compare(wanted, got, CLOSE):
                place = f"parameter {found.path}{list(found.index) if found.index else ''}"
                return (
                    f"after step {step + 1} rank {rank} has {found.got} in {place}, and one process has "
                    f"{found.expected}"
                )
    return None


def replicas(run: CaseRun) -> str | None:
    """All ranks have the same bits."""
    first, *others = (one["after"] for one in run.got["ranks"])
    for rank, other in enumerate(others, 1):
        if compare(first, other) is not None:
            return f"the parameters of rank 0 and rank {rank} are close, but not the same bits"
    return None


replicas.hint = "All ranks copy what the all-gather brought, their own part included: then they have the same bits."


def most_state_bytes(case: ShardedSteps) -> int:
    """An n-th of every parameter, rounded up, so that it is also enough for who cuts each parameter for itself."""
    elements = sum(shard_size(math.prod(shape), case.n_ranks) for shape in case.shapes)
    return 4 * STATES[case.optimizer] * elements


def states_are_cut(run: CaseRun[ShardedSteps]) -> str | None:
    """Each rank's optimizer holds the states of a shard."""
    most = most_state_bytes(run.case)
    for rank, one in enumerate(run.got["ranks"]):
        if one["state_bytes"] > most:
            return (
                f"the optimizer states of rank {rank} take {one['state_bytes']} bytes; a shard of the "
                f"{run.case.n_elements} parameters needs {most} at most"
            )
    return None


states_are_cut.hint = (
    "The weights are right, and the states are not cut: every rank updates everything. Give make_optimizer the rank's "
    "own part of the weights alone, cloned, so that it is no view of the whole."
)


def made_by_maker(run: CaseRun[ShardedSteps]) -> str | None:
    """The optimizers of make_optimizer made the steps; a rank whose shard is empty may have none."""
    n_busy = math.ceil(run.case.n_elements / shard_size(run.case.n_elements, run.case.n_ranks))
    for rank, one in enumerate(run.got["ranks"][:n_busy]):
        if one["n_updates"] < run.case.n_steps:
            return f"rank {rank}'s optimizers from make_optimizer took {one['n_updates']} of {run.case.n_steps} steps"
    return None


made_by_maker.hint = "Make the optimizer of the shard with make_optimizer, once, and call its step() in each step."


def most_bytes(run: CaseRun[ShardedSteps]) -> int:
    """Two passes round the ring in each step."""
    case = run.case
    elements = sum(shard_size(math.prod(shape), case.n_ranks) for shape in case.shapes)
    return max(case.n_steps * 2 * (case.n_ranks - 1) * 4 * elements, 1)


def in_words(run: Observation) -> str:
    case = run.case
    idle = f"; parameter {case.idle} has no gradient" if case.idle >= 0 else ""
    return (
        f"{case.n_steps} steps of ZeRO1 with {case.optimizer} on {case.n_ranks} rank{'s' * (case.n_ranks > 1)}, "
        f"parameters of shapes {', '.join(map(str, case.shapes))}{idle}"
    )


def as_mistaken(*mistakes: str):
    return trained_as_with(played, *mistakes)


def nothing_moved(run: CaseRun[ShardedSteps]) -> bool:
    return all(torch.equal(step, run.memo(played).start) for steps in got_flat(run) for step in steps)


def idle_moves_otherwise(run: CaseRun[ShardedSteps]) -> bool:
    """What has a gradient is right, and what has none is not."""
    case = run.case
    if case.idle < 0 or same(run.memo(played).right(), got_flat(run)):
        return False
    keep = flat([torch.full(shape, k != case.idle) for k, shape in enumerate(case.shapes)])
    right = [[step[keep] for step in steps] for steps in run.memo(played).right()]
    return same(right, [[step[keep] for step in steps] for steps in got_flat(run)])


ZERO1 = Oracle(
    id="16-zero1",
    call=in_words,
    judge=(inputs_untouched, as_in_one_process, replicas, states_are_cut, made_by_maker),
    axis="numbers of ranks that divide nothing, fewer elements than ranks, and parameters without a gradient",
    errors={
        "reduce_scatter_single": "Both collectives need n parts of equal length. Fill the flat tensor up with zeros to "
        "a multiple of the number of ranks.",
        "all_gather_single": "Both collectives need n parts of equal length. Fill the flat tensor up with zeros to "
        "a multiple of the number of ranks.",
    },
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "More bytes than DDP sends. An all-reduce is a reduce-scatter and an all-gather already: reduce-scatter "
            "the gradients, update, and all-gather the weights, in float32, and nothing else.",
        ),
        Budget(
            "collectives",
            lambda run: 2 * run.case.n_steps,
            "Too many calls: put all parameters into one flat tensor, so that a step has one reduce-scatter and one "
            "all-gather.",
        ),
    ),
    diagnose=(
        Hint(nothing_moved, "No weight has moved. Copy what the all-gather brought into the parameters, in place."),
        Hint(
            tail_stands_still(played),
            "The last elements never move: N // n elements a rank leave N mod n of them without an owner. Round up, "
            "and fill the flat tensor up with zeros.",
        ),
        Hint(
            only_own_part_moves(played),
            "On every rank only its own part has moved. After the update, an all-gather hands the new weights to all.",
        ),
        Hint(
            as_mistaken("shifted"),
            "The gradient's parts and the weights' parts begin at different places: both begin at rank x (elements of "
            "a part), and a part has the length rounded up.",
        ),
        Hint(as_mistaken("sums"), "The gradients are sums over the ranks. Data parallel training uses their mean."),
        Hint(as_mistaken("averages twice"), "The gradient was divided by the number of ranks twice."),
        Hint(
            as_mistaken("each for itself", "own gradient of own part", "first rank only"),
            "A part was updated with the gradient of one rank alone. The reduce-scatter averages over all of them.",
        ),
        Hint(
            as_mistaken("forgets its states"),
            "The optimizer starts anew in each step, without its states. Make it once, in __init__.",
        ),
        Hint(
            as_mistaken("adds up over steps"),
            "The gradients of earlier steps are still in the shard's gradient: replace it in each step.",
        ),
        Hint(
            idle_moves_otherwise,
            "A parameter without a gradient counts as one with a gradient of zeros: momentum and weight decay still "
            "move it.",
        ),
    ),
)
