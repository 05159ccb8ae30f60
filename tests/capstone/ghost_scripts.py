"""The ghosts' scripts, and how their published numbers are made: `python -m tests.capstone.ghost_scripts quad/silver`.

Silver of the basement is the solution of 20-budget itself, and gold an unusual right answer to it. What does not fit
its machine is billed and not trained.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grading.demo.examples import example
from labkit.capstone import PUBLIC_SEEDS, Entry, entry_of, play
from labkit.capstone.ghosts import LEVELS
from labkit.capstone.machine import FOURTH, read_fourth
from tests.exercises.harness import solution_of

HERE = Path(__file__).parent / "ghosts"
STORED = Path(__file__).resolve().parents[2] / "labkit" / "capstone" / "ghosts.json"


def ghost_scripts() -> dict[tuple[str, str], str]:
    """By machine and level."""
    found = {(path.parent.name, path.stem): path.read_text() for path in sorted(HERE.glob("*/*.py"))}
    found["basement", "silver"] = solution_of("20-budget")
    found["basement", "gold"] = example("right", "20-budget/three_sequences_a_step").source
    return dict(sorted(found.items(), key=lambda item: (item[0][0], LEVELS.index(item[0][1]))))


def played(text: str, seeds: tuple[int, ...] = PUBLIC_SEEDS[:1]) -> Entry:
    """The entry of a script; one that does not fit has losses of no seed. Any other rule that it breaks is an error."""
    found = play(text, seeds)
    if found["kind"] not in ("", "memory"):
        raise AssertionError(found["problem"])
    return entry_of(found)


def main(asked: list[str]) -> None:
    """Play the ghosts that are asked for, "quad/silver", or all, and store their numbers beside the others'."""
    for (machine, level), text in ghost_scripts().items():
        if asked and f"{machine}/{level}" not in asked:
            continue
        entry = played(text)
        print(machine, level, entry.virtual_hours, entry.losses, entry.fits, entry.reached, flush=True)
        _store(machine, level, entry)


def _store(machine: str, level: str, entry: Entry) -> None:
    fourth = read_fourth()
    is_fourth = fourth["machine"]["name"] == machine
    path = FOURTH if is_fourth else STORED
    stored = fourth if is_fourth else json.loads(path.read_text(encoding="utf-8"))
    levels = stored["ghosts"] if is_fourth else stored.setdefault(machine, {})
    levels[level] = entry.to_json()
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
