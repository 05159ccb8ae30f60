"""Lab 16: what is true where gradients are cut as they come: never a whole gradient, a pass for each micro-batch."""

from __future__ import annotations

import math

from labkit.compare import came_by, inputs_untouched
from labkit.exercises.lab16.optimizers import STATES
from labkit.exercises.lab16.shards import ShardedSteps
from labkit.exercises.lab16.zero2 import MOMENTS
from labkit.oracles.lab16.one_process import (
    as_in_one_process,
    idle_moves_otherwise,
    made_by_maker,
    nothing_moved,
    only_own_part_moves,
    replicas,
    states_are_cut,
    tail_stands_still,
    trained_as_with,
)
from labkit.oracles.lab16.zero1 import ROOM_BYTES, room_bytes
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle


def largest(case: ShardedSteps) -> int:
    return max(math.prod(shape) for shape in case.shapes)


def most_bytes(run: CaseRun[ShardedSteps]) -> int:
    """A pass for each micro-batch, and one for the weights."""
    case = run.case
    return max(case.n_steps * (case.n_micro + 1) * (case.n_ranks - 1) * 4 * case.cut_elements, 1)


def most_calls(run: CaseRun[ShardedSteps]) -> int:
    """One for each gradient that comes, and one for each parameter that goes."""
    case = run.case
    return case.n_steps * (case.n_micro + 1) * len(case.shapes)


def held(run: CaseRun[ShardedSteps]) -> int:
    """The weights; and of its part the weights, the gradient and the states."""
    case = run.case
    return 4 * (case.n_elements + (2 + STATES[case.optimizer]) * case.cut_elements) + room_bytes(case)


def most_at_any_time(run: CaseRun[ShardedSteps]) -> int:
    """What is held, the loss's own tensors, and of the largest parameter some whole ones on their way."""
    case = run.case
    own = 4 * (6 * case.n_elements + (6 + 2 * STATES[case.optimizer]) * case.cut_elements)
    return own + 4 * 8 * largest(case) + 2 * ROOM_BYTES


def gradients_leave(run: CaseRun[ShardedSteps]) -> str | None:
    """A property: once the hooks of a parameter have run, no more than two gradients are in .grad."""
    most = 2 * 4 * largest(run.case)
    for rank, one in enumerate(run.got["ranks"]):
        if one["grads_alive"] > most and len(run.case.shapes) > 2:
            return f"during the backward pass .grad of rank {rank}'s parameters held {one['grads_alive']} bytes at once"
    return None


gradients_leave.hint = (
    "The whole gradient was there at once. In the hook of a parameter, reduce-scatter its gradient, and set "
    "parameter.grad = None."
)


def in_words(run: Observation) -> str:
    case = run.case
    idle = f"; parameter {case.idle} has no gradient" if case.idle >= 0 else ""
    micro = f" of {case.n_micro} micro-batches" * (case.n_micro > 1)
    return (
        f"{case.n_steps} steps{micro} of ZeRO2 with {case.optimizer} on {case.n_ranks} "
        f"rank{'s' * (case.n_ranks > 1)}, parameters of shapes {', '.join(map(str, case.shapes))}{idle}"
    )


EQUAL_PARTS = "Both collectives need n parts of equal length: fill the gradient up with zeros to a multiple of n."

ZERO2 = Oracle(
    id="16-zero2",
    call=in_words,
    judge=(
        inputs_untouched,
        as_in_one_process,
        replicas,
        states_are_cut,
        made_by_maker,
        gradients_leave,
        came_by(lambda run: [(moment, None) for moment in MOMENTS]),
    ),
    axis="numbers of ranks that divide nothing, parameters without a gradient, and several micro-batches",
    errors={
        "reduce_scatter_single": EQUAL_PARTS,
        "all_gather_single": EQUAL_PARTS,
        "'NoneType' object has no attribute": "Some gradient is None. In step(), that of a part whose parameter's "
        "hook never ran: it counts as zeros. In a hook, that of a parameter whose hook has run before: register "
        "it once.",
    },
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes. In each micro-batch every gradient takes one pass, a reduce-scatter, and after the step "
            "the weights take one, an all-gather. An all-reduce is two passes.",
        ),
        Budget(
            "collectives",
            most_calls,
            "Too many calls: one reduce-scatter for each gradient that comes, and at most one all-gather for each "
            "parameter in a step.",
        ),
        Budget(
            "held_bytes",
            held,
            "After the backward pass a rank holds more than the weights, and of its own part the weights, gradient and "
            "states. Free the whole gradient in the hook: parameter.grad = None, and keep no view of it. A part of the "
            "weights that is a view keeps the whole row alive: clone it.",
            at=MOMENTS[0],
        ),
        Budget(
            "held_bytes",
            held,
            "Between two steps a rank holds more than the weights, and of its own part the weights, gradient and "
            "states.",
            at=MOMENTS[1],
        ),
        Budget("peak_bytes", most_at_any_time, "At some point several whole copies of weights or gradients are held."),
    ),
    diagnose=(
        Hint(nothing_moved, "No weight has moved. Copy what the all-gather brought into the parameters, in place."),
        Hint(
            tail_stands_still,
            "The last elements never move: N // n elements a rank leave N mod n of them without an owner. Round up.",
        ),
        Hint(
            only_own_part_moves,
            "On every rank only its own part has moved. After the update, an all-gather hands the new weights to all.",
        ),
        Hint(
            trained_as_with("last micro-batch only"),
            "Only the last micro-batch counted. The parts of all micro-batches of a step are added up.",
        ),
        Hint(
            trained_as_with("adds up over steps"),
            "The gradients of earlier steps are still in the shard's gradient. Clear it at the end of step().",
        ),
        Hint(
            trained_as_with("reduced again"),
            "Gradients of earlier backward passes were reduced again: they are still in parameter.grad. Set it to None "
            "as soon as it has been reduced.",
        ),
        Hint(trained_as_with("sums"), "The gradients are sums over the ranks. Data parallel training uses their mean."),
        Hint(trained_as_with("averages twice"), "The gradient was divided by the number of ranks twice."),
        Hint(
            trained_as_with("each for itself", "own gradient of each own part", "first rank only"),
            "A part was updated with the gradient of one rank alone. The reduce-scatter averages over all of them.",
        ),
        Hint(
            trained_as_with("forgets its states"),
            "The optimizer starts anew in each step, without its states. Make it once, in __init__.",
        ),
        Hint(
            idle_moves_otherwise,
            "A parameter without a gradient counts as one with a gradient of zeros: momentum and weight decay still "
            "move it.",
        ),
    ),
)
