"""Lab 12: a masked sum of two vectors. What is asked, given and run."""

from __future__ import annotations

from labkit.exercises.lab12.shapes import PATIENT, Vector, draw
from labkit.spec import Answer, Exercise


def drive_add(ans, case: Vector, tree: dict, stage) -> dict:
    """One sum, its traffic counted and its kernel compiled."""
    with stage.meter("traffic"), stage.meter("compiled"):
        return {"out": ans.add(tree["x"], tree["y"])}


ADD = Exercise(
    id="12-add",
    title="A sum in blocks, with a mask",
    points=2,
    minutes=15,
    difficulty=1,
    answers=(Answer("add"),),
    public=(Vector(1000), Vector(4096), Vector(2500), Vector(257, "bfloat16"), Vector(1, "float16")),
    inputs=lambda case, gen: {name: draw(case, gen, case.n) for name in "xy"},
    drive=drive_add,
    run=PATIENT,
    meters=("traffic", "compiled"),
    # 4096 tokens of width 4096.
    full_size=Vector(4096 * 4096, "bfloat16"),
)
