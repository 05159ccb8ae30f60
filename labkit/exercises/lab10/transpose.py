"""Lab 10: what is asked, given and run for a transpose in tiles without bank conflicts."""

from __future__ import annotations

from labkit.exercises.lab10.tile import TILE, drive_transpose
from labkit.spec import Answer, Exercise, Run

TRANSPOSE = Exercise(
    id="10-transpose",
    title="A transpose without bank conflicts",
    points=2,
    minutes=10,
    difficulty=2,
    answers=(Answer("transpose", kind="text"),),
    public=TILE.public,
    inputs=TILE.inputs,
    drive=drive_transpose("transpose"),
    run=Run(cells=False),
    meters=("cuda",),
)
