"""Lab 20: what is odd about the runs that a referee judged wrongly, for its hints.

Students have this file, so it asks what a wrong verdict has to do with a log, and never who cheats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from labkit.exercises.lab20.logs import Log, Rules
from labkit.exercises.lab20.referee import Hearing
from labkit.oracles.hints import Condition, once
from labkit.spec import CaseRun


@dataclass(frozen=True)
class Wrong:
    """A run that was judged wrongly: its log, the rules, what is true and what was said."""

    log: Log
    rules: Rules
    true: str
    said: str


@once
def wrong(run: CaseRun[Hearing]) -> list[Wrong]:
    """The runs that were judged wrongly."""
    return [
        Wrong(log, run.tree["rules"], run.expected[log["run"]], run.got[log["run"]])
        for log in run.tree["logs"]
        if run.got[log["run"]] != run.expected[log["run"]]
    ]


def all_wrong(holds: Callable[[Wrong], bool]) -> Condition:
    """A hint's condition: this is so of every run that was judged wrongly."""
    return lambda run: bool(wrong(run)) and all(map(holds, wrong(run)))


def anything(one: Wrong) -> bool:
    return True


def missed(reason: str, holds: Callable[[Wrong], bool] = anything) -> Condition:
    """Runs that cheat in this way were not accused of it, only such where this holds, and nothing else is wrong."""
    return all_wrong(lambda one: one.true == reason and holds(one))


def accused(reason: str, holds: Callable[[Wrong], bool] = anything) -> Condition:
    """Runs were accused of this wrongly, only such where this holds, and nothing else is wrong."""
    return all_wrong(lambda one: one.said == reason and holds(one))


def any_trial(holds: Callable[[Any, Wrong], bool]) -> Callable[[Wrong], bool]:
    return lambda one: any(holds(trial, one) for trial in one.log["trials"])


def all_trials(holds: Callable[[Any, Wrong], bool]) -> Callable[[Wrong], bool]:
    return lambda one: all(holds(trial, one) for trial in one.log["trials"])


# What may be odd about a run ------------------------------------------------------------------------------------------


@any_trial
def touches_evaluation(trial: Log, one: Wrong) -> bool:
    """A step's tokens end where evaluation begins, or begin where it ends."""
    start, stop = one.rules["evaluation"]
    return any(b == start or a == stop for _, a, b in trial["served"])


@all_trials
def no_step_inside(trial: Log, one: Wrong) -> bool:
    """No step has evaluation tokens and no others."""
    start, stop = one.rules["evaluation"]
    return not any(start <= a and b <= stop for _, a, b in trial["served"])


@any_trial
def repeats_tokens(trial: Log, one: Wrong) -> bool:
    """Two steps of different numbers have the same tokens, and nothing was started again."""
    return not trial["restarts"] and len({(a, b) for _, a, b in trial["served"]}) < len(trial["served"])


def n_due(trial: Log, one: Wrong) -> int:
    """Steps that are declared, and those that declared restarts repeat."""
    return one.log["steps"] + sum(after - resumed for after, resumed in trial["restarts"])


@all_trials
def as_many_as_due(trial: Log, one: Wrong) -> bool:
    return len(trial["served"]) == n_due(trial, one)


@all_trials
def not_too_few(trial: Log, one: Wrong) -> bool:
    return len(trial["served"]) >= n_due(trial, one)


@all_trials
def every_number_there(trial: Log, one: Wrong) -> bool:
    return {step for step, _, _ in trial["served"]} == set(range(1, one.log["steps"] + 1))


@all_trials
def up_to_the_last(trial: Log, one: Wrong) -> bool:
    return trial["served"][-1][0] == one.log["steps"]


def restarts_in_order(one: Wrong) -> bool:
    """Numbers and declared restarts agree, so it is the tokens that do not."""
    return bool(as_many_as_due(one) and every_number_there(one) and any(t["restarts"] for t in one.log["trials"]))


def seeds_differ(one: Wrong) -> bool:
    return len({trial["seed"] for trial in one.log["trials"]}) == len(one.log["trials"])


def losses_repeat(one: Wrong) -> bool:
    return len({trial["loss"] for trial in one.log["trials"]}) < len(one.log["trials"])


def length(chunks: Iterable[list[int]]) -> int:
    return sum(b - a for a, b in chunks)


@all_trials
def enough_in_sum(trial: Log, one: Wrong) -> bool:
    start, stop = one.rules["evaluation"]
    return length(trial["evaluated"]) >= stop - start


@all_trials
def up_to_the_end(trial: Log, one: Wrong) -> bool:
    return max(b for _, b in trial["evaluated"]) >= one.rules["evaluation"][1]


@any_trial
def chunks_meet(trial: Log, one: Wrong) -> bool:
    """Chunks overlap or stand in another order."""
    chunks = trial["evaluated"]
    return any(b != a for (_, b), (a, _) in pairwise(chunks))


@any_trial
def above_at_all(trial: Log, one: Wrong) -> bool:
    return trial["seen_mib"] > trial["claimed_mib"]


@any_trial
def far_below(trial: Log, one: Wrong) -> bool:
    return trial["claimed_mib"] - trial["seen_mib"] > one.rules["slack_mib"]


@any_trial
def below_floor(trial: Log, one: Wrong) -> bool:
    return trial["loss"] < one.rules["floor"]


def fine_in_first(one: Wrong) -> bool:
    """Memory and loss of the first trial are within what is tolerated."""
    trial = one.log["trials"][0]
    within = trial["seen_mib"] <= trial["claimed_mib"] + one.rules["slack_mib"]
    return within and trial["loss"] >= one.rules["floor"] - one.rules["luck"]


def same_total(one: Wrong) -> bool:
    return len({sum(ops.values()) for ops in one.log["ops"].values()}) == 1


def same_counts(one: Wrong) -> bool:
    return len({tuple(sorted(ops.values())) for ops in one.log["ops"].values()}) == 1


def same_at(one: str, other: str) -> Callable[[Wrong], bool]:
    return lambda run: run.log["ops"][one] == run.log["ops"][other]


def probe_agrees(what: str) -> Callable[[Wrong], bool]:
    return lambda run: run.log["probe"]["known"][what] == run.log["probe"]["counted"][what]
