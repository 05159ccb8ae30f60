"""Lab 15: what is true of a training that was cut short twice.

The training is done over in one process (`launch_training`): the curve, and the checkpoint that has to lie there at
each kill. The inputs may hold a checkpoint with drawn numbers, whose curve nobody can know who did
not read it.
"""

from __future__ import annotations

import torch

from labkit.exercises.lab15.launch import InterruptedTraining
from labkit.oracles.lab15.launch_faults import (
    CONDUCT,
    FAULTS,
)
from labkit.oracles.lab15.launch_mistakes import leaves_at_the_restart
from labkit.oracles.lab15.launch_training import (
    close,
    course,
    first_departure,
    flat,
)
from labkit.spec import CaseRun, Hint, Oracle


def undisturbed(run: CaseRun) -> str | None:
    """Curve, model, and the checkpoints at the kills are those of a training that nobody disturbed."""
    got = run.got
    try:
        apart = departure(run)
    except Exception as error:
        # What came back may be of any kind, and a fault may say why; else it is for a person to look at.
        apart = error
    for when, problem, _ in FAULTS if apart else CONDUCT:
        try:
            found = bool(when(run))
        except Exception:
            found = False
        if found:
            return f"{problem} ({got['error']})" if got["error"] else problem
    if isinstance(apart, Exception):
        raise apart
    return apart


def departure(run: CaseRun[InterruptedTraining]) -> str | None:
    """Where the numbers leave those of the undisturbed training first: the curve, the model, a checkpoint at a kill."""
    got = run.got
    right = course(run)
    step = first_departure(right, got)
    if step is not None:
        return f"the loss of step {step + 1} is {got['losses'][step]:.5g}; undisturbed it is {right.losses[step]:.5g}"
    if not close(got["model"], flat(right.at[run.case.n_steps]["model"].values())):
        return "the final model is not that of the undisturbed training"
    if len(got["left"]) != 2 or got["ended"] != 0:
        return f"{len(got['left'])} of 2 kills took place, and torchrun ended with {got['ended']}"
    for left, step in zip(got["left"], run.case.kept_at, strict=True):
        kept = right.at[step]
        same = (
            (left["state"], left["step"]) == ("whole", step)
            and close(left["model"], flat(kept["model"].values()))
            and close(left["momentum"], flat(kept["momentum"]))
            and close(left["losses"], torch.tensor(kept["losses"], dtype=torch.float64))
            and all(map(torch.equal, left["generators"], kept["generators"]))
        )
        if not same:
            return f"the checkpoint of step {step} is not the state of the training after that step"
    return None


LAUNCH = Oracle(
    id="15-launch",
    judge=(undisturbed,),
    diagnose=(
        *(Hint(when, hint) for when, _, hint in FAULTS if hint is not None),
        Hint(
            leaves_at_the_restart,
            "Up to a restart the curve is right, and from the next step on it is not. A restart continues from "
            "everything in the checkpoint: the model, the optimizer, the place in the epoch, and this rank's "
            "generator by set_state.",
        ),
    ),
)
