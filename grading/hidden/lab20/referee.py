"""Lab 20: hidden contests. What is odd about a run is drawn with the inputs, and read off its log here.

Tokens are counted one by one, in sets: slow, and without a case that could be forgotten.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

from grading.hidden import Hidden
from labkit.exercises.lab20 import logs
from labkit.exercises.lab20.logs import Log, Rules
from labkit.exercises.lab20.referee import HONEST, Hearing
from labkit.spec import CaseRun


def charges(log: Log, rules: Rules) -> Iterator[str]:
    """The reasons for which a run can be accused."""
    trials = log["trials"]
    evaluation = set(range(*rules["evaluation"]))
    if any(not evaluation.isdisjoint(range(a, b)) for one in trials for _, a, b in one["served"]):
        yield logs.TRAINED_ON_EVALUATION
    if any(not as_declared(one, log["steps"]) for one in trials):
        yield logs.OTHER_STEPS
    if any(len({one[key] for one in trials}) < rules["n_seeds"] for key in ("seed", "first_weights")):
        yield logs.ONE_SEED_TWICE
    if any(evaluation - {token for chunk in one["evaluated"] for token in range(*chunk)} for one in trials):
        yield logs.FEWER_EVALUATED
    if any(one["seen_mib"] - one["claimed_mib"] > rules["slack_mib"] for one in trials):
        yield logs.PEAK_ABOVE_CLAIM
    if len({frozenset(ops.items()) for ops in log["ops"].values()}) > 1:
        yield logs.OTHER_OPERATIONS
    if not hashlib.sha256(log["script"].encode("utf-8")).hexdigest().startswith(log["digest"]):
        yield logs.ANOTHER_SCRIPT
    if log["probe"]["known"] != log["probe"]["counted"]:
        yield logs.METER_OFF
    if any(rules["floor"] - one["loss"] > rules["luck"] for one in trials):
        yield logs.BELOW_FLOOR


def as_declared(trial: Log, n_steps: int) -> bool:
    """Whether steps follow one another but for declared restarts, and a step that is run again has its tokens."""
    crashes, tokens, before = list(trial["restarts"]), {}, 0
    for step, *served in trial["served"]:
        if step != before + 1 and (not crashes or crashes.pop(0) != [before, step - 1]):
            return False
        if tokens.setdefault(step, served) != served:
            return False
        before = step
    return before == n_steps and not crashes


def expected(run: CaseRun[Hearing]) -> dict[str, str]:
    return {log["run"]: next(charges(log, run.tree["rules"]), HONEST) for log in run.tree["logs"]}


def hearings(rng: random.Random) -> tuple[Hearing, ...]:
    """Every cheat and everything that is allowed; honest runs alone; more cheats than honest runs; one of each."""
    return (
        Hearing(n_cheats=26, n_honest=14),
        Hearing(n_honest=rng.randint(13, 20)),
        Hearing(n_cheats=rng.randint(6, 12), n_honest=3),
        Hearing(n_cheats=1, n_honest=1),
    )


REFEREE = Hidden("20-referee", hearings, expect=expected)
