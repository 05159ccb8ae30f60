"""Lab 10: what is asked, given and run for a transpose in tiles without bank conflicts."""

from __future__ import annotations

from labkit.exercises.lab10.tile import Matrix, drive_transpose, matrix_inputs
from labkit.spec import Answer, Exercise, Run

TRANSPOSE = Exercise(
    id="10-transpose",
    title="A transpose without bank conflicts",
    points=2,
    minutes=15,
    difficulty=2,
    answers=(Answer("transpose", kind="text"),),
    public=(Matrix(64, 64), Matrix(32, 96), Matrix(33, 40), Matrix(70, 45)),
    inputs=matrix_inputs,
    drive=drive_transpose("transpose"),
    run=Run(cells=False),
    meters=("cuda",),
)
