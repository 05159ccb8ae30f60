"""Lab 16: what holds for ZeRO-1 and ZeRO-2 alike: what is held between steps, and the mistakes that both can make.

How many bytes they may send differs, and stands with each.
"""

from __future__ import annotations

from labkit.exercises.lab16.optimizers import STATES
from labkit.exercises.lab16.shards import ShardedSteps
from labkit.oracles.lab16.step_mistakes import (
    idle_moves_otherwise,
    nearly_right,
    nothing_moved,
    only_own_part_moves,
    part_not_updated,
    trained_as_with,
)
from labkit.spec import CaseRun, Hint

ROOM_BYTES = 2**19
"""For counters, and for what Python itself holds."""
N_EQUAL_PARTS = (
    "Both collectives take the output first, and one of the two tensors is n times as long as the other: its n parts "
    "have equal length. Fill {what} up with zeros to a multiple of n."
)
"""Where a collective is refused for the lengths of its tensors."""
WRONG_LENGTHS = "in dimension 0, and of its dtype"
"""What the refusal says, in part."""


def held_between_steps(run: CaseRun[ShardedSteps]) -> int:
    """The weights; and of its part the weights, the gradient and the states. What an allocator keeps grows with the
    weights: an eighth of them. A whole copy would be eight times that."""
    case = run.case
    own = 4 * (case.n_elements + (2 + STATES[case.optimizer]) * case.cut_elements)
    return own + ROOM_BYTES + 4 * case.n_elements // 8


def least_pass_bytes(case: ShardedSteps) -> int:
    """What all ranks together send at least where every element that has a gradient comes from all of them, or goes to
    all: a float32 number for each rank but one."""
    return 4 * (case.n_ranks - 1) * case.n_active


def steps_in_words(case: ShardedSteps, name: str, of_what: str = "") -> str:
    """The steps that a case stands for, by the class of this name."""
    idle = f"; parameter {case.idle} has no gradient" if case.idle >= 0 else ""
    return (
        f"{case.n_steps} steps{of_what} of {name} with {case.optimizer} on {case.n_ranks} "
        f"rank{'s' * (case.n_ranks > 1)}, parameters of shapes {', '.join(map(str, case.shapes))}{idle}"
    )


NO_PART_UPDATED = Hint(
    part_not_updated,
    "No weight has moved, since the optimizer has not updated this rank's part. Give make_optimizer the part, not the "
    "parameters, and set the part's .grad before the optimizer's step.",
)
NOTHING_MOVED = Hint(
    nothing_moved, "No weight has moved. Copy what the all-gather brought into the parameters, in place."
)
ONLY_OWN_PART_MOVES = Hint(
    only_own_part_moves,
    "On every rank only its own part has moved. After the update, an all-gather hands the new weights to all.",
)
SUMS = Hint(trained_as_with("sums"), "The gradients are sums over the ranks. Data parallel training uses their mean.")
AVERAGES_TWICE = Hint(trained_as_with("averages twice"), "The gradient was divided by the number of ranks twice.")
FORGETS_ITS_STATES = Hint(
    trained_as_with("forgets its states"),
    "The optimizer starts anew in each step, without its states. Make it once, in __init__.",
)
IDLE_MOVES_OTHERWISE = Hint(
    idle_moves_otherwise,
    "A parameter without a gradient counts as one with a gradient of zeros: momentum and weight decay still move it.",
)
NEARLY_RIGHT = Hint(
    nearly_right,
    "The weights are nearly right, and further off than float32 sums in another order can be. Were gradients or "
    "weights rounded to 16 bits, for the network or for the optimizer? Keep and send them in float32.",
)


def one_rank_alone(own_parts: str) -> Hint:
    """own_parts: the mistake of this exercise in which nothing is added up."""
    return Hint(
        trained_as_with("each for itself", own_parts, "first rank only"),
        "A part was updated with the gradient of one rank alone. The reduce-scatter averages over all of them.",
    )
