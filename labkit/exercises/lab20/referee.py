"""Lab 20: which of the runs that were handed in cheat, and how one knows.

What is odd about which run is drawn in `inputs`, so that a process that runs an answer on hidden cases does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from labkit.exercises.lab20.cheats import CHEATS, draw_logs
from labkit.exercises.lab20.logs import ALLOWED, draw_rules
from labkit.spec import Answer, Case, Exercise

HONEST = "honest"
"""What stands in the result for a run that is not accused."""


@dataclass(frozen=True)
class Hearing(Case):
    """The logs of a contest. runs: what is odd about each, where the case may tell; else n_cheats and n_honest are
    drawn, every cheat and every oddity that is allowed once before any comes twice."""

    runs: tuple[str, ...] = ()
    n_cheats: int = 0
    n_honest: int = 0


def planned(case: Hearing, rng: Random) -> tuple[str, ...]:
    """What is odd about each run."""
    if case.runs:
        return case.runs
    plans = []
    for names, wanted in ((list(CHEATS), case.n_cheats), (list(ALLOWED), case.n_honest)):
        while wanted > 0:
            taken = rng.sample(names, min(wanted, len(names)))
            plans += taken
            wanted -= len(taken)
    rng.shuffle(plans)
    return tuple(plans)


def hearing(case: Hearing, gen: torch.Generator) -> dict[str, Any]:
    """logs: of the runs in order; rules: of the contest."""
    rng = Random(int(torch.randint(2**31, (), generator=gen)))
    rules = draw_rules(rng)
    return {"logs": draw_logs(planned(case, rng), rules, rng), "rules": rules}


def drive(ans, case: Hearing, tree: dict, stage) -> Any:
    """By run the reason, "honest" for one that is not accused; what is no mapping as it came back."""
    accused = ans.referee(tree["logs"], tree["rules"])
    if not isinstance(accused, Mapping):
        return accused
    said = {str(run): str(reason) for run, reason in accused.items()}
    return {**{log["run"]: HONEST for log in tree["logs"]}, **said}


REFEREE = Exercise(
    id="20-referee",
    title="Who cheats, and how do you know?",
    points=5,
    minutes=45,
    difficulty=2,
    answers=(Answer("referee"),),
    public=(
        Hearing(("plain", "stops_early", "far_above", "plain", "inside")),
        Hearing(("weights_twice", "not_the_one_that_ran", "tail_left_out", "plain", "few_flops", "impossible")),
        Hearing(("plain", "less_work_at_full_size", "number_twice", "goes_on", "repeats_in_silence")),
        Hearing(("restarted", "lucky", "slack_used", "neighbour", "overlapping_chunks", "other_order")),
        Hearing(("equal_losses", "accents", "grazing", "second_epoch", "claims_too_much", "growing_batch")),
        Hearing(("around", "by_a_few_tokens", "leaves_one_out", "restarts_with_fresh_tokens", "restarted", "lucky")),
        Hearing(("gap", "chunk_twice", "moved", "once_above", "restarts_twice_as_far", "slack_used")),
        Hearing(("few_bytes", "another_operation", "tells_the_middle_size", "accents", "grazing")),
    ),
    inputs=hearing,
    drive=drive,
)
