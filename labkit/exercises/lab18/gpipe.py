"""Lab 18: what is asked, given and run for GPipe's order of passes."""

from __future__ import annotations

from typing import Any

from labkit.exercises.lab18.orders import Pipe, orders_of
from labkit.spec import Answer, Exercise


def drive_gpipe(ans, case: Pipe, tree: dict, stage) -> dict[str, Any]:
    """orders: what was returned for each stage."""
    return {"orders": orders_of(ans.gpipe, case)}


GPIPE = Exercise(
    id="18-gpipe",
    title="Cut the batch: GPipe",
    points=2,
    minutes=15,
    difficulty=1,
    answers=(Answer("gpipe"),),
    public=(
        Pipe(),
        Pipe(3, 5, forward=(1.0, 3.0, 2.0), transfer=0.5),
        Pipe(4, 2),
        Pipe(1, 3),
        Pipe(3, 1),
    ),
    inputs=lambda case, gen: {},
    drive=drive_gpipe,
)
