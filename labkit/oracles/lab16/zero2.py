"""Lab 16: what is true where gradients are cut as they come: never a whole gradient, a pass for each micro-batch."""

from __future__ import annotations

import math

from labkit.compare import came_by, inputs_untouched, sent_around
from labkit.exercises.lab16.optimizers import STATES
from labkit.exercises.lab16.shards import ShardedSteps
from labkit.exercises.lab16.zero2 import MOMENTS
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


def sent_by_moments(run: CaseRun[ShardedSteps]) -> list[tuple[int, int]]:
    """At least, by each moment and afterwards: a pass for each micro-batch, then one for the weights."""
    case, a_pass = run.case, least_pass_bytes(run.case)
    steps = [step * (case.n_micro + 1) for step in range(case.n_steps)]
    by_then = [before + more for before in steps for more in (case.n_micro, case.n_micro + 1)]
    return [(a_pass * n, a_pass * (by_then[-1] - n)) for n in by_then]


def in_words(run: Observation) -> str:
    case = run.case
    return steps_in_words(case, "ZeRO2", f" of {case.n_micro} micro-batches" * (case.n_micro > 1))


EQUAL_PARTS = N_EQUAL_PARTS.format(what="each parameter")

ZERO2 = Oracle(
    id="16-zero2",
    call=in_words,
    judge=(
        inputs_untouched,
        as_in_one_process,
        replicas,
        states_are_not_whole,
        states_are_cut,
        made_by_maker,
        gradients_leave,
        came_by(lambda run: [(moment, None) for moment in MOMENTS] * run.case.n_steps),
        sent_around(
            sent_by_moments,
            "Gradients were still at home when the backward pass had ended. Reduce-scatter each of them, in float32, "
            "in the hook of its parameter, in every micro-batch: added up at home, the whole gradient takes memory.",
        ),
    ),
    axis="numbers of ranks that divide nothing, parameters without a gradient, and several micro-batches",
    errors={
        WRONG_LENGTHS: EQUAL_PARTS,
        "is invalid for input of size": "What the all-gather brings is longer than the parameter where n does not "
        "divide it: leave the zeros at its end out before you give it the parameter's shape.",
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
            held_between_steps,
            "After the backward pass a rank holds more than the weights, and of its own part the weights, gradient and "
            "states. Free the whole gradient in the hook: parameter.grad = None, and keep no view of it. A part of the "
            "weights that is a view keeps the whole row alive: clone it.",
            at=MOMENTS[0],
        ),
        Budget(
            "held_bytes",
            held_between_steps,
            "Between two steps a rank holds more than the weights, and of its own part the weights, gradient and "
            "states.",
            at=MOMENTS[1],
        ),
        Budget("peak_bytes", most_at_any_time, "At some point several whole copies of weights or gradients are held."),
    ),
    diagnose=(
        NO_PART_UPDATED,
        NOTHING_MOVED,
        Hint(
            tail_stands_still,
            "The last elements never move: N // n elements a rank leave N mod n of them without an owner. Round up.",
        ),
        ONLY_OWN_PART_MOVES,
        Hint(
            trained_as_with("last micro-batch only"),
            "Only the last micro-batch counted. The parts of all micro-batches of a step are added up.",
        ),
        Hint(
            trained_as_with("averages micro-batches"),
            "The gradients of a step's micro-batches were averaged. They add up: each loss is divided by their number "
            "already.",
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
        SUMS,
        AVERAGES_TWICE,
        one_rank_alone("own gradient of each own part"),
        FORGETS_ITS_STATES,
        IDLE_MOVES_OTHERWISE,
        NEARLY_RIGHT,
    ),
)
