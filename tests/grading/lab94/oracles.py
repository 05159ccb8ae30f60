"""Lab 94, second half: a step takes 36 virtual seconds, whatever it does."""

from __future__ import annotations

from labkit.capstone import Entry, virtual_hours
from labkit.capstone.processor import processor
from labkit.spec import GiB, Oracle

STEP_S = 36.0
DOUBTED = "a meter disagrees"


def _record(runs):
    got = runs[0].got
    if got["changed"] == DOUBTED:
        # As where a judge stumbles over what came back: a person has to look.
        raise ValueError(DOUBTED)
    peak = {"parameters": 2 * GiB, "activations": got["steps"] * 2**20}
    hours = virtual_hours(0.0, STEP_S, got["steps"])
    named = (got["digest"], got["changed"])
    entry = Entry(got["machine"], hours, got["steps"], STEP_S * 1e3, 0.0, peak, {"7": 1.5}, *named)
    return {"entry": entry.to_json(), "judged_on": processor()}


SCRIPT = Oracle(
    id="94-script",
    judge=(lambda run: run.got["problem"] or None,),
    score=lambda runs: 1.0 if runs[0].got["steps"] <= 100 else 0.5 if runs[0].got["steps"] <= 300 else 0.0,
    record=_record,
)
