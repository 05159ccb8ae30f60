"""Lab 15: what can go wrong in a training that is cut short twice: the problem in words, and the hint on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from labkit.exercises.lab15.launch import InterruptedTraining
from labkit.exercises.lab15.torchrun import N_RANKS
from labkit.oracles.lab15.launch_mistakes import (
    began_at_zero,
    from_the_start,
    kept_other,
    never_drawn,
    slipped,
    went_on_alone,
)
from labkit.oracles.lab15.launch_training import (
    began_the_epoch_again,
    from_other_weights,
)
from labkit.spec import CaseRun

Fault = tuple[Callable[[CaseRun[InterruptedTraining]], Any], str, str | None]
"""Whether a run has it (an exception counts as no), the problem in words, the hint."""


GENERATORS = (
    "Each rank draws noise of its own, so 'generators' is a list with the state of every rank's generator: rank 0 has "
    "to be sent the others'."
)


CONDUCT: tuple[Fault, ...] = (
    (
        lambda run: set(run.got["saves"][0]) & set(run.got["saves"][1]),
        "both ranks wrote to the same file",
        "Two processes that write one file at the same time leave a mixture of both. Let rank 0 alone write the "
        "checkpoint, after it has been sent what the others have to add.",
    ),
    (
        went_on_alone,
        "after one rank was killed, the other one trained on without it",
        "A rank whose collective fails has lost the others: let the error end it, or the remaining rank continues "
        "with its own half of the data. torchrun then starts all ranks again.",
    ),
    (
        lambda run: (
            "loading state_dict" in str(run.got["error"])
            or any(name.startswith("module.") for left in run.got["left"] for name in left["names"])
        ),
        "'model' in checkpoint.pt is the state dict of the nn.Linear itself, and was taken for another one",
        "DistributedDataParallel puts `module.` before each name: keep, and load, the state dict of the nn.Linear "
        "itself.",
    ),
    (
        began_at_zero,
        "a start began at step 0, although there was a checkpoint",
        "It restarts from zero: where folder/checkpoint.pt exists when the script starts, load it and continue from "
        "the step it holds.",
    ),
)
"""What can be wrong although all numbers are right."""


FAULTS: tuple[Fault, ...] = (
    *CONDUCT[:3],
    (
        lambda run: not run.got["left"] and run.got["error"],
        "the script failed before any rank was killed",
        "That line of your script raised the error. What a script prints is not shown here: to see a value, raise an "
        "error with it in the text.",
    ),
    (
        lambda run: run.got["ended"] is None,
        "the launch had to be ended, because its ranks did not",
        "Some rank waits for another one forever. Every rank has to call every collective, even one whose result only "
        "rank 0 needs.",
    ),
    (
        lambda run: not run.got["left"],
        "the ranks did not come to the step at which one is killed",
        "Each rank takes every step of the training by step() of its own torch.optim.SGD: the killed rank is counted "
        "there.",
    ),
    (
        lambda run: (
            run.got["left"][0]["state"] == "none"
            or (run.case.begun_steps and run.got["left"][0]["step"] == run.case.begun_steps)
        ),
        "no checkpoint.pt had been written when a rank was killed",
        "There was no checkpoint to continue from: write folder/checkpoint.pt after every job['every'] steps.",
    ),
    (
        lambda run: any(left["state"] == "torn" for left in run.got["left"]),
        "a rank was killed while it wrote, and left a checkpoint.pt that cannot be read",
        "The old checkpoint is gone before the new one is whole. Write to another name in the same folder, then "
        "os.replace it onto checkpoint.pt: that happens at once or not at all.",
    ),
    (
        began_the_epoch_again,
        "after the restart, the epoch began again with its first batch",
        "The checkpoint lies in the middle of an epoch: skip the batches of it that were done, step % steps per epoch.",
    ),
    CONDUCT[3],
    (
        kept_other("step", lambda kept, right: kept != right["step"]),
        "checkpoint.pt held another step than the last one that is a multiple of job['every']",
        "'step' is the number of steps done, an int, and a checkpoint is written whenever it is a multiple of "
        "job['every'].",
    ),
    (
        kept_other("momentum", lambda kept, right: kept is None),
        "checkpoint.pt held no momentum under 'optimizer'",
        "SGD's momentum is part of the training's state: keep optimizer.state_dict() under 'optimizer', and load it.",
    ),
    (
        from_the_start("seed without rank"),
        "both ranks drew the same noise",
        "Both ranks drew the same noise. Seed the generator of each with job['seed'] + rank.",
    ),
    (
        lambda run: (
            len(run.got["left"][0]["generators"]) != N_RANKS
            or (not run.case.begun_steps and torch.equal(*run.got["left"][0]["generators"]))
        ),
        "checkpoint.pt did not hold each rank's own generator",
        GENERATORS,
    ),
    (
        slipped("rank 0's generator", 1),
        "from the restart on, all ranks draw the noise of rank 0",
        "Every rank takes its own state out of the checkpoint: kept['generators'][rank].",
    ),
    (
        kept_other("generators", lambda kept, right: len(kept) != N_RANKS or torch.equal(*kept)),
        "checkpoint.pt did not hold each rank's own generator",
        GENERATORS,
    ),
    (
        never_drawn,
        "the noise was not drawn from the ranks' generators",
        "The generators are where they were at the start: hand this rank's to torch.randn(..., generator=generator).",
    ),
    (
        kept_other("losses", lambda kept, right: kept is None or len(kept) != len(right["losses"])),
        "checkpoint.pt did not hold one loss for each step done",
        "The losses so far are part of the state: a restarted process knows only those in the checkpoint.",
    ),
    (
        lambda run: len(run.got["left"]) == 1 and not run.got["error"],
        "after the restart, rank 0 did not come to the save in which it is killed",
        "A restarted script keeps writing checkpoints, by torch.save on rank 0.",
    ),
    (
        # A start that failed by itself, and was followed by one that did not, is what restarts are for.
        lambda run: run.got["error"] and run.got["ended"] != 0,
        "the script failed in a start in which no rank was killed",
        None,
    ),
    (
        lambda run: run.got["losses"] is None or run.got["model"] is None,
        "there is no result.pt with 'losses' and 'model'",
        "At the end rank 0 saves {'losses': the list of all losses, 'model': model.state_dict()} to folder/result.pt.",
    ),
    (
        lambda run: len(run.got["losses"]) != run.case.n_steps,
        "the losses are not one for each step of the training",
        "The curve has to hold one loss for each of the n_epochs epochs' steps, those before the kills included.",
    ),
    (
        slipped("model", 1),
        "after the restart, the model was that of the beginning",
        "The steps continue, but the model starts over: load kept['model'] into it before the first step.",
    ),
    (
        slipped("momentum", 3),
        "from the restart on, the curve is that of an optimizer without its momentum",
        "The model was restored, but not the optimizer: load its state_dict too, or momentum begins at zero again.",
    ),
    (
        slipped("generators", 1),
        "from the restart on, the noise is that of the first steps",
        "The generators begin again from their seed: set_state what the checkpoint holds for this rank.",
    ),
    (
        from_the_start("never set_epoch"),
        "every epoch has the order of the first one",
        "The sampler shuffles by seed + epoch: without set_epoch every epoch has the order of epoch 0.",
    ),
    (
        slipped("set_epoch", 1),
        "after the restart, the batches came in the order of epoch 0",
        "A new sampler is at epoch 0: call set_epoch with the epoch that the step lies in, also after a restart.",
    ),
    (
        from_the_start("own loss"),
        "the curve is that of rank 0's own loss",
        "The curve holds the mean of both ranks' losses: all-reduce a detached copy of the loss, and divide by the "
        "number of ranks.",
    ),
    (
        from_the_start("summed loss"),
        "the curve is that of the sum of both ranks' losses",
        "The curve holds the mean of both ranks' losses, and an all-reduce adds them up: divide by the number of "
        "ranks.",
    ),
    (
        from_the_start("loss after the update"),
        "the curve is that of the losses after each update",
        "A step's loss is the one before its update: the one that backward() was called on.",
    ),
    (
        from_the_start("summed gradients"),
        "the curve is that of summed gradients",
        "The gradients were added up over the ranks: divide them by the number of ranks, as DistributedDataParallel "
        "does.",
    ),
    (
        from_the_start("never averaged"),
        "the curve is that of two ranks which train each for itself",
        "The gradients were not averaged: take the loss from what DistributedDataParallel returned, not from the model "
        "inside, whose forward pass it does not see.",
    ),
    (
        from_other_weights,
        "the training began with other weights than job['model']",
        "Load job['model'] into the nn.Linear before the first step, where there is no checkpoint to continue from.",
    ),
)
