"""Lab 16: what is true where optimizer states are cut: one process's weights, DDP's bytes, an n-th of the states."""

from __future__ import annotations

from labkit.compare import came_by, inputs_untouched
from labkit.exercises.lab16.optimizers import STATES
from labkit.exercises.lab16.shards import ShardedSteps
from labkit.exercises.lab16.zero1 import MOMENT
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
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle

ROOM_BYTES = 2**19
"""For counters, and for what Python itself holds."""


def most_bytes(run: CaseRun[ShardedSteps]) -> int:
    """Two passes round the ring in each step."""
    case = run.case
    return max(case.n_steps * 2 * (case.n_ranks - 1) * 4 * case.cut_elements, 1)


def room_bytes(case: ShardedSteps) -> int:
    """What an allocator keeps grows with the weights: an eighth of them. A whole copy would be eight times that."""
    return ROOM_BYTES + 4 * case.n_elements // 8


def held_between_steps(run: CaseRun[ShardedSteps]) -> int:
    """The weights; and of its part the weights, the gradient and the states."""
    case = run.case
    return 4 * (case.n_elements + (2 + STATES[case.optimizer]) * case.cut_elements) + room_bytes(case)


def most_in_a_step(run: CaseRun[ShardedSteps]) -> int:
    """Weights, gradients, a flat copy of each that is made in two steps, and the parts."""
    case = run.case
    return 4 * (7 * case.n_elements + (6 + 2 * STATES[case.optimizer]) * case.cut_elements) + 2 * ROOM_BYTES


def in_words(run: Observation) -> str:
    case = run.case
    idle = f"; parameter {case.idle} has no gradient" if case.idle >= 0 else ""
    return (
        f"{case.n_steps} steps of ZeRO1 with {case.optimizer} on {case.n_ranks} rank{'s' * (case.n_ranks > 1)}, "
        f"parameters of shapes {', '.join(map(str, case.shapes))}{idle}"
    )


EQUAL_PARTS = (
    "Both collectives need n parts of equal length. Fill the flat tensor up with zeros to a multiple of the number of "
    "ranks."
)

ZERO1 = Oracle(
    id="16-zero1",
    call=in_words,
    judge=(
        inputs_untouched,
        as_in_one_process,
        replicas,
        states_are_cut,
        made_by_maker,
        came_by(lambda run: [(MOMENT, None)]),
    ),
    axis="numbers of ranks that divide nothing, fewer elements than ranks, and parameters without a gradient",
    errors={"reduce_scatter_single": EQUAL_PARTS, "all_gather_single": EQUAL_PARTS},
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
        Budget(
            "held_bytes",
            held_between_steps,
            "A rank holds more between two steps than the weights, and the weights, gradient and states of its own "
            "part. Keep no flat copy of everything: a part that is a view keeps the whole alive, so clone it.",
            at=MOMENT,
        ),
        Budget(
            "peak_bytes",
            most_in_a_step,
            "A step needs more memory than the weights, the gradients, and a flat copy of each.",
        ),
    ),
    diagnose=(
        Hint(nothing_moved, "No weight has moved. Copy what the all-gather brought into the parameters, in place."),
        Hint(
            tail_stands_still,
            "The last elements never move: N // n elements a rank leave N mod n of them without an owner. Round up, "
            "and fill the flat tensor up with zeros.",
        ),
        Hint(
            only_own_part_moves,
            "On every rank only its own part has moved. After the update, an all-gather hands the new weights to all.",
        ),
        Hint(
            trained_as_with("shifted"),
            "The gradient's parts and the weights' parts begin at different places: both begin at rank x (elements of "
            "a part), and a part has the length rounded up.",
        ),
        Hint(trained_as_with("sums"), "The gradients are sums over the ranks. Data parallel training uses their mean."),
        Hint(trained_as_with("averages twice"), "The gradient was divided by the number of ranks twice."),
        Hint(
            trained_as_with("each for itself", "own gradient of own part", "first rank only"),
            "A part was updated with the gradient of one rank alone. The reduce-scatter averages over all of them.",
        ),
        Hint(
            trained_as_with("forgets its states"),
            "The optimizer starts anew in each step, without its states. Make it once, in __init__.",
        ),
        Hint(
            trained_as_with("adds up over steps"),
            "The gradients of earlier steps are still in the shard's gradient: replace it in each step.",
        ),
        Hint(
            trained_as_with("closed up"),
            "A parameter without a gradient was left out of the flat tensor, so the gradients after it have moved up "
            "into its place. Put zeros where .grad is None.",
        ),
        Hint(
            idle_moves_otherwise,
            "A parameter without a gradient counts as one with a gradient of zeros: momentum and weight decay still "
            "move it.",
        ),
    ),
)
