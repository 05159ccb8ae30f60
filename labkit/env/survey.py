"""Look at the machine: every probe's finding, in the order of the page. How it is shown is `page`'s business."""

from __future__ import annotations

from collections.abc import Sequence

from labkit.env import machine, packages
from labkit.env.finding import EnvFinding, Probe


def look(probes: Sequence[Probe] | None = None) -> list[EnvFinding]:
    """What every probe finds, in order; one that fails gives a note, so that the page always appears."""
    return [_found(probe) for probe in ((*machine.PROBES, *packages.PROBES) if probes is None else probes)]


def _found(probe: Probe) -> EnvFinding:
    try:
        return probe()
    except Exception as error:
        name = getattr(probe, "__name__", "this").strip("_").replace("_", " ")
        return EnvFinding(name, "note", f"could not be determined ({type(error).__name__})")
