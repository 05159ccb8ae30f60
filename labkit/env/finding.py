"""One line of the environment page as data, and the function that collects them all.

What each line looks at is in `machine` and `packages`, how it is shown in `page`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "red"]


@dataclass(frozen=True)
class Finding:
    """state: "ok"; "note" where something optional is missing; "red" where the labs will not work as it is.

    value holds nothing that changes between two looks at the same machine. fix is one command, or what to do.
    """

    name: str
    state: State
    value: str
    fix: str | None = None


Probe = Callable[[], Finding]


def look(probes: Sequence[Probe] | None = None) -> list[Finding]:
    """What every probe finds, in order; one that fails gives a note, so that the page always appears."""
    if probes is None:
        from labkit.env import machine, packages

        probes = (*machine.PROBES, *packages.PROBES)
    return [_found(probe) for probe in probes]


def _found(probe: Probe) -> Finding:
    try:
        return probe()
    except Exception as error:
        name = getattr(probe, "__name__", "this").strip("_").replace("_", " ")
        return Finding(name, "note", f"could not be found out ({type(error).__name__})")
