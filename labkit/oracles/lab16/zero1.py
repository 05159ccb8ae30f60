"""Lab 16: what is true where optimizer states are cut: one process's weights, DDP's bytes, an n-th of the states."""

from __future__ import annotations

from labkit.compare import came_by, inputs_untouched, sent_around
from labkit.exercises.lab16.optimizers import STATES
from labkit.exercises.lab16.shards import ShardedSteps
from labkit.exercises.lab16.zero1 import MOMENT
from labkit.oracles.lab16.one_process import as_in_one_process, replicas
from labkit.oracles.lab16.optimizer_states import made_by_maker, states_are_cut, states_are_not_whole
from labkit.oracles.lab16.sharded_steps import (
    AVERAGES_TWICE,
    FORGETS_ITS_STATES,
    IDLE_MOVES_OTHERWISE,
    N_EQUAL_PARTS,
    NEARLY_RIGHT,
    NO_PART_UPDATED,
    NOTHING_MOVED,
    ONLY_OWN_PART_MOVES,
    ROOM_BYTES,
    SUMS,
    WRONG_LENGTHS,
    held_between_steps,
    least_pass_bytes,
    one_rank_alone,
    steps_in_words,
)
from labkit.oracles.lab16.step_mistakes import tail_stands_still, trained_as_with
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle


def most_bytes(run: CaseRun[ShardedSteps]) -> int:
    """Two passes round the ring in each step."""
    case = run.case
    return max(case.n_steps * 2 * (case.n_ranks - 1) * 4 * case.cut_elements, 1)


def most_in_a_step(run: CaseRun[ShardedSteps]) -> int:
    """Weights, gradients, a flat copy of each that is made in two steps, and the parts."""
    case = run.case
    return 4 * (7 * case.n_elements + (6 + 2 * STATES[case.optimizer]) * case.cut_elements) + 2 * ROOM_BYTES


def sent_by_steps(run: CaseRun[ShardedSteps]) -> list[tuple[int, int]]:
    """At least, by the end of each step and afterwards: two passes in every step."""
    passes = 2 * least_pass_bytes(run.case)
    n_steps = run.case.n_steps
    return [(passes * done, passes * (n_steps - done)) for done in range(1, n_steps + 1)]


def in_words(run: Observation) -> str:
    return steps_in_words(run.case, "ZeRO1")


EQUAL_PARTS = (
    f"{N_EQUAL_PARTS.format(what='the flat tensor')} A parameter without a gradient has its place in it, too: zeros."
)

ZERO1 = Oracle(
    id="16-zero1",
    call=in_words,
    judge=(
        inputs_untouched,
        as_in_one_process,
        replicas,
        states_are_not_whole,
        states_are_cut,
        made_by_maker,
        came_by(lambda run: [(MOMENT, None)] * run.case.n_steps),
        sent_around(
            sent_by_steps,
            "Too little was sent. In each step every part of the gradient comes from all ranks, and every part of the "
            "new weights goes to all of them, in float32: two passes.",
        ),
    ),
    axis="numbers of ranks that divide nothing, fewer elements than ranks, and parameters without a gradient",
    errors={
        WRONG_LENGTHS: EQUAL_PARTS,
        "'NoneType' object has no attribute": "Some .grad is None: a parameter without a gradient counts as one with a "
        "gradient of zeros.",
        "is invalid for input of size": "The new weights were cut in other places than the parameters, or some are "
        "missing: a part has N / n elements, rounded up, and what the zeros at the end took is left out.",
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
        NO_PART_UPDATED,
        NOTHING_MOVED,
        Hint(
            tail_stands_still,
            "The last elements never move: N // n elements a rank leave N mod n of them without an owner. Round up, "
            "and fill the flat tensor up with zeros.",
        ),
        ONLY_OWN_PART_MOVES,
        Hint(
            trained_as_with("shifted"),
            "The gradient's parts and the weights' parts begin at different places: both begin at rank x (elements of "
            "a part), and a part has the length rounded up.",
        ),
        SUMS,
        AVERAGES_TWICE,
        one_rank_alone("own gradient of own part"),
        FORGETS_ITS_STATES,
        Hint(
            trained_as_with("adds up over steps"),
            "The gradients of earlier steps are still in the shard's gradient: replace it in each step.",
        ),
        Hint(
            trained_as_with("closed up"),
            "A parameter without a gradient was left out of the flat tensor, so the gradients after it have moved up "
            "into its place. Put zeros where .grad is None.",
        ),
        IDLE_MOVES_OTHERWISE,
        NEARLY_RIGHT,
    ),
)
