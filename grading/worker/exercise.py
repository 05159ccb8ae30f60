"""Serve one exercise: take its cases one at a time, drive the answer on each, and send back what happened.

Public and hidden cases look the same from here. What it measures is a claim: the supervisor limits, watches and
probes from outside.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

import torch

from grading.worker.launch_log import recorder_of
from grading.worker.procfs import memory_of
from grading.worker.protocol.steps import ServeExercise
from grading.worker.rank import run_rank
from grading.worker.wire.frames import Channel, case_from_tree, trouble_to_tree
from labkit import exercises
from labkit.devices import device
from labkit.observe import gather_answers, observe
from labkit.spec import Exercise, Observation, Tree, Trouble
from labkit.stage import Stage
from labkit.tree import same


def serve_exercise(channel: Channel, namespace: dict[str, object], step: ServeExercise) -> None:
    """Say "ready", then answer "case" and "probe" frames with "observed" and "probed" ones until "done"."""
    channel.send("ready")
    exercise = exercises.find(step.exercise_id)
    _limit_memory(exercise)
    answers = gather_answers(exercise, {**namespace, **step.texts})
    while True:
        kind, parts = channel.receive()
        if kind == "case":
            _serve_case(channel, exercise, answers, parts)
        elif kind == "probe":
            channel.send("probed", {"measured": _probe(parts["meter"], parts["n"])})
        else:
            return


def _serve_case(channel: Channel, exercise: Exercise, answers: object, parts: dict[str, Tree]) -> None:
    case, tape = case_from_tree(type(exercise.public[0]), parts["case"]), {}
    if isinstance(answers, Trouble):
        run = Observation(case, parts["tree"], trouble=answers)
    elif "rank" in parts:
        run = run_rank(channel, exercise, answers, case, parts)
    else:
        recorder = recorder_of(exercise, parts["watched"])
        run = observe(recorder.exercise if recorder else exercise, answers, case, parts["tree"], lend=parts["watched"])
        tape = {"tape": recorder.log} if recorder else {}
    # Inputs that are as they came need not go back: saying so is worth as much as sending them.
    back = {} if same(parts["tree"], run.back) else {"back": run.back}
    said = {"got": run.got, "measured": dict(run.measured), "trouble": trouble_to_tree(run.trouble)}
    channel.send("observed", {**said, **back, **tape})


def _probe(meter: str, n: int) -> dict[str, float]:
    """What the meter says of n additions and a product of 2n FLOPs, asked for as a driver asks."""
    stage = Stage(device=device(), tmp=Path.cwd())
    x, row, column = torch.zeros(()), torch.zeros(1, n), torch.zeros(n, 1)
    with stage.meter(meter):
        for _ in range(n):
            x = x + 1
        torch.mm(row, column)
    return stage.measured


def _limit_memory(exercise: Exercise) -> None:
    """An answer that runs away gets a MemoryError rather than an end to its whole notebook."""
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        cap = memory_of(os.getpid()).data_bytes + exercise.run.memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (cap if most == resource.RLIM_INFINITY else min(cap, most), most))
