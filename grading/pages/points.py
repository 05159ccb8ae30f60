"""Points as pages write them."""

from __future__ import annotations


def in_points(value: float) -> str:
    """Two decimals at most: "2", "1.5"; never "-0"."""
    return f"{round(value, 2) + 0.0:g}"
