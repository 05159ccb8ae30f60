"""Amounts in words: bytes in the units that people compare, figures beside their limits, figures by their names.

It computes nothing else. What a figure's unit is, `labkit.measures` knows.
"""

from __future__ import annotations

from labkit.spec import GiB, KiB, MiB

FEW_S = 10.0


def in_bytes(n_bytes: float) -> str:
    """ "640 B", "12.5 KiB", "3.20 MiB", and from 1 GiB on both units that are in use: "14.90 GiB (16.00 GB)"."""
    # By the rounded figure: 1023.999 MiB is a GiB.
    if round(abs(n_bytes) / MiB, 2) >= KiB:
        return f"{n_bytes / GiB:,.2f} GiB ({n_bytes / 1e9:,.2f} GB)"
    if round(abs(n_bytes) / KiB, 1) >= KiB:
        return f"{n_bytes / MiB:.2f} MiB"
    if round(abs(n_bytes)) >= KiB:
        return f"{n_bytes / KiB:.1f} KiB"
    return f"{n_bytes:.0f} B"


SHARE = "of each sector"
"""Of what GPUs move in sectors: a share, which is no count."""


def in_unit(value: float, unit: str) -> str:
    """A figure with its unit, large byte counts also in a larger one: "49 operations", "4,096 bytes (4.0 KiB)". Few
    seconds are told in milliseconds."""
    if unit == SHARE:
        return f"{value:.1%} {unit}"
    if unit == "seconds" and value < FEW_S:
        value, unit = 1000 * value, "ms"
    text = f"{value:,.0f} {unit}"
    larger, size = _larger(value, unit)
    return f"{text} ({value / size:,.1f} {larger})" if larger else text


def of_limit(name: str, measured: float, limit: float, unit: str) -> str:
    """A measure beside its limit: "49 of 288 operations", "109.3 of 151.1 KiB (peak)"."""
    if unit == "seconds" and limit < FEW_S:
        measured, limit, unit = 1000 * measured, 1000 * limit, "ms"
    what = f" ({name.replace('_bytes', '', 1)})" if unit == "bytes" else ""
    larger, size = _larger(limit, unit)
    if larger:
        return f"{measured / size:,.1f} of {limit / size:,.1f} {larger}{what}"
    return f"{measured:,.0f} of {limit:,.0f} {unit}{what}"


def by_name(name: str, value: object) -> str:
    """A figure with the unit that its name ends in: `wall_s` 1.25 is "wall 1.25 s", `calls` 1200 "calls 1,200"."""
    if not isinstance(value, int | float):
        return f"{name} {value}"
    if name.endswith("_s"):
        return f"{name.removesuffix('_s').replace('_', ' ')} {value:,.6g} s"
    if name.partition(", ")[0].endswith("_bytes"):
        return f"{name.replace('_bytes', '', 1).replace('_', ' ')} {value / MiB:,.1f} MiB".strip()
    return f"{name.replace('_', ' ')} {f'{value:,}' if isinstance(value, int) else f'{value:,.6g}'}".strip()


def _larger(value: float, unit: str) -> tuple[str, int]:
    """The name and the size of the unit that so many bytes are better told in; an empty name where there is none."""
    sizes = (("MiB", MiB), ("KiB", KiB)) if unit == "bytes" else ()
    return next(((name, size) for name, size in sizes if value >= size), ("", 1))
