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

from grading.worker.watch import memory_of
from grading.worker.wire import Channel, case_from_tree, trouble_to_tree
from labkit import exercises
from labkit.device import device
from labkit.observe import gather_answers, observe
from labkit.spec import Exercise, Observation, Tree, Trouble
from labkit.stage import Stage


def serve_exercise(channel: Channel, namespace: dict[str, object], step: dict[str, Tree]) -> None:
    """Say "ready", then answer "case" and "probe" frames with "observed" and "probed" ones until "done"."""
    channel.send("ready")
    exercise = exercises.find(step["exercise"])
    _limit_memory(exercise)
    answers = gather_answers(exercise, {**namespace, **step["texts"]})
    while True:
        kind, parts = channel.receive()
        if kind == "case":
            _serve_case(channel, exercise, answers, parts)
        elif kind == "probe":
            channel.send("probed", {"measured": _probe(parts["meter"], parts["n"])})
        else:
            return


def _serve_case(channel: Channel, exercise: Exercise, answers: object, parts: dict[str, Tree]) -> None:
    case = case_from_tree(type(exercise.public[0]), parts["case"])
    if isinstance(answers, Trouble):
        run = Observation(case, parts["tree"], trouble=answers)
    else:
        run = observe(exercise, answers, case, parts["tree"], lend=parts["watched"])
    said = {"got": run.got, "back": run.back, "measured": dict(run.measured)}
    channel.send("observed", {**said, "trouble": trouble_to_tree(run.trouble)})


def _probe(meter: str, n: int) -> dict[str, float]:
    """What the meter says of n operations, asked for as a driver asks."""
    stage = Stage(device=device(), tmp=Path.cwd())
    x = torch.zeros(())
    with stage.meter(meter):
        for _ in range(n):
            x = x + 1
    return stage.measured


def _limit_memory(exercise: Exercise) -> None:
    """An answer that runs away gets a MemoryError rather than an end to its whole notebook."""
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        cap = memory_of(os.getpid()).data_bytes + exercise.run.memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (cap if most == resource.RLIM_INFINITY else min(cap, most), most))
