"""Lab 16: whose optimizer made the steps, and how many bytes of states each rank's holds."""

from __future__ import annotations

from labkit.exercises.lab16.optimizers import STATES
from labkit.exercises.lab16.shards import ShardedSteps
from labkit.spec import CaseRun


def most_state_bytes(case: ShardedSteps) -> int:
    """An n-th of every parameter, rounded up, so that it is also enough for who cuts each parameter for itself."""
    return 4 * STATES[case.optimizer] * case.cut_elements


def states_are_not_whole(run: CaseRun[ShardedSteps]) -> str | None:
    """A property: no rank's optimizer holds the states of all parameters, where they are more than a shard's."""
    whole = 4 * STATES[run.case.optimizer] * run.case.n_elements
    for rank, one in enumerate(run.got["ranks"]):
        if one["state_bytes"] >= whole > most_state_bytes(run.case):
            return (
                f"the optimizer states of rank {rank} take {one['state_bytes']} bytes, as many as those of everything"
            )
    return None


states_are_not_whole.hint = (
    "The weights are right, and the states are not cut: every rank updates everything. Give make_optimizer the rank's "
    "own part of the weights alone, cloned, so that it is no view of the whole."
)


def states_are_cut(run: CaseRun[ShardedSteps]) -> str | None:
    """A property: each rank's optimizer holds the states of a shard."""
    most = most_state_bytes(run.case)
    for rank, one in enumerate(run.got["ranks"]):
        if one["state_bytes"] > most:
            return (
                f"the optimizer states of rank {rank} take {one['state_bytes']} bytes; a shard of the "
                f"{run.case.n_elements} parameters needs {most} at most"
            )
    return None


states_are_cut.hint = (
    "The weights are right, and a rank's optimizer holds more than an n-th of the states, rounded up. Parts of equal "
    "length hold least: where whole parameters are dealt to ranks, who gets the largest holds too much."
)


def made_by_maker(run: CaseRun[ShardedSteps]) -> str | None:
    """A property: the optimizers of make_optimizer made the steps. A rank with an empty shard may have none: the first
    rank never has."""
    done, n_steps = run.got["ranks"][0]["n_updates"], run.case.n_steps
    return None if done >= n_steps else f"rank 0's optimizer from make_optimizer took {done} of {n_steps} steps"


made_by_maker.hint = "Make the optimizer of the shard with make_optimizer, once, and call its step() in each step."
