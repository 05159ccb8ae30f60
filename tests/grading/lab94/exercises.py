"""Lab 94, first half: a script for a board, of which only the declarations count; copied into the worker's tree."""

from __future__ import annotations

from labkit.capstone.script import ScriptRefused, read
from labkit.spec import Answer, Case, Exercise, Run

ORDER = ("script",)


def _drive(ans, case, tree, stage):
    try:
        script = read(ans.STEPS)
    except ScriptRefused as error:
        return {"problem": str(error)}
    declared = {"machine": script.machine, "steps": script.steps, "changed": script.changed, "digest": script.digest}
    return {"problem": "", **declared}


SCRIPT = Exercise(
    id="94-script",
    title="A script for the board",
    points=2,
    minutes=1,
    difficulty=1,
    answers=(Answer("STEPS", kind="text"),),
    public=(Case(),),
    inputs=lambda case, gen: {},
    drive=_drive,
    run=Run(cells=False),
)
