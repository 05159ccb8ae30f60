"""Amounts in words: bytes in the units that people compare. It computes nothing else."""

from __future__ import annotations

from labkit.spec import GiB, KiB, MiB


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
