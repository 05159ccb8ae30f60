"""Serve one exercise: take its cases one at a time, drive the answer on each, and send back what happened.

Public and hidden cases look the same from here. What it measures is a claim: the supervisor limits, watches and
probes from outside.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from grading.worker.launch_log import observe_written, recorder_of
from grading.worker.probes import PROBES
from grading.worker.procfs import memory_of
from grading.worker.protocol.job import Done, Observed, Probe, Probed, Ready, RunCase
from grading.worker.protocol.steps import ServeExercise
from grading.worker.protocol.trees import case_from_tree
from grading.worker.rank import run_rank
from grading.worker.store import run_on_store
from grading.worker.wire.frames import Channel
from labkit import exercises
from labkit.devices import device
from labkit.observe import gather_answers, known_settings, observe
from labkit.spec import Exercise, Observation, Trouble
from labkit.stage import Stage


def serve_exercise(channel: Channel, namespace: dict[str, object], step: ServeExercise) -> None:
    """Take cases and probes, and answer each, until there are no more."""
    channel.post(Ready())
    exercise = exercises.find(step.exercise_id)
    _limit_memory(exercise)
    answers = gather_answers(exercise, {**namespace, **step.texts})
    while True:
        frame = channel.expect((RunCase, Probe, Done))
        if isinstance(frame, RunCase):
            channel.post(_observed(channel, exercise, answers, frame))
        elif isinstance(frame, Probe):
            channel.post(Probed(_measured(frame.meter, frame.n)))
        else:
            return
        # The inputs of this case would count as held when the memory of the next one is measured.
        del frame


def _observed(channel: Channel, exercise: Exercise, answers: object, sent: RunCase) -> Observed:
    case = case_from_tree(exercise.public, sent.case)
    if isinstance(answers, Trouble):
        return Observed.of(Observation(case, sent.tree, trouble=answers))
    if sent.rank is not None:
        return Observed.of(run_rank(channel, exercise, answers, case, sent))
    if sent.job is not None:
        return Observed.of(run_on_store(channel, exercise, answers, case, sent))
    if case == exercise.full_size:
        return Observed.of(*observe_written(exercise, answers))
    recorder = recorder_of(exercise, sent.lend)
    run = observe(recorder.exercise if recorder else exercise, answers, case, sent.tree, lend=sent.lend)
    return Observed.of(run, recorder.log if recorder else None)


def _measured(meter: str, n: int) -> dict[str, float]:
    """What the meter says of its probe of size n, asked for as a driver asks."""
    stage = Stage(device=device(), tmp=Path.cwd())
    # In the settings of the cases, not in those that the notebook left.
    with known_settings():
        work = PROBES[meter](n)
        with stage.meter(meter):
            work()
    return stage.measured


def _limit_memory(exercise: Exercise) -> None:
    """An answer that runs away gets a MemoryError rather than an end to its whole notebook."""
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        cap = memory_of(os.getpid()).data_bytes + exercise.run.memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (cap if most == resource.RLIM_INFINITY else min(cap, most), most))
