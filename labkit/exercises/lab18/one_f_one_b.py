"""Lab 18: what is asked, given and run for the order of passes called 1F1B."""

from __future__ import annotations

from typing import Any

from labkit.exercises.lab18.orders import Pipe, orders_of
from labkit.spec import Answer, Exercise


def drive_one_f_one_b(ans, case: Pipe, tree: dict, stage) -> dict[str, Any]:
    """orders: what was returned for each stage."""
    return {"orders": orders_of(ans.one_f_one_b, case)}


ONE_F_ONE_B = Exercise(
    id="18-one-f-one-b",
    title="Same time, less memory: 1F1B",
    points=4,
    minutes=35,
    difficulty=2,
    answers=(Answer("one_f_one_b"),),
    public=(
        Pipe(),
        Pipe(3, 7, forward=(1.0, 2.0, 1.0), backward=(2.0, 5.0, 1.0), transfer=0.5),
        Pipe(5, 3),
        Pipe(2, 6, forward=(1.0, 2.0)),
        Pipe(1, 3),
        Pipe(4, 1),
    ),
    inputs=lambda case, gen: {},
    drive=drive_one_f_one_b,
)
