"""The ghosts: entries of our own that ship with the lab, without their scripts, for a student to run against.

naive is what everybody writes first and does not fit; bronze fits; silver uses what the labs taught; gold is the best
that is known. A test plays their scripts again and finds these numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from labkit.capstone.entry import Entry
from labkit.capstone.machine import read_fourth
from labkit.capstone.score import ranked

LEVELS = ("naive", "bronze", "silver", "gold")


@cache
def ghosts() -> Mapping[str, Mapping[str, Entry]]:
    """By machine, and by level; a machine may lack some."""
    stored = json.loads(Path(__file__).with_name("ghosts.json").read_text(encoding="utf-8"))
    if fourth := read_fourth():
        stored[fourth["machine"]["name"]] = fourth["ghosts"]
    return {
        machine: {level: Entry.from_json(levels[level]) for level in LEVELS if level in levels}
        for machine, levels in stored.items()
    }


def standing(entry: Entry) -> str:
    """Where an entry stands among the ghosts of its machine, and what its peak consists of, in a sentence or two."""
    of_machine = ghosts().get(entry.machine, {})
    rows = ranked([*of_machine.values(), entry])
    peak = f"The largest part of the peak is {entry.largest}."
    if entry not in rows:
        return f"It has no place on the board. {peak}"
    place = rows.index(entry)
    level = {ghost.digest: name for name, ghost in of_machine.items()}
    above = rows[place - 1] if place else None
    ahead = (
        f"above it is {level[above.digest]} with {above.virtual_hours:.3g} virtual hours"
        if above is not None
        else "no ghost is above it"
    )
    return (
        f"{entry.virtual_hours:.3g} virtual hours: place {place + 1} of {len(rows)} among the ghosts; {ahead}. {peak}"
    )
