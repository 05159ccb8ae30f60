"""Serve one exercise: take its cases one at a time, drive the answer on each, and send back what happened.

Public and hidden cases look the same from here.
"""

from __future__ import annotations

import math
import resource

from grading.worker.wire import Channel, case_from_tree, trouble_to_tree
from labkit import exercises
from labkit.observe import gather_answers, observe
from labkit.spec import Exercise, Observation, Tree, Trouble

GRACE_S = 2


def serve_exercise(channel: Channel, namespace: dict[str, object], step: dict[str, Tree]) -> None:
    """Say "ready", then answer "case" frames with "observed" frames until "done"."""
    channel.send("ready")
    exercise = exercises.find(step["exercise"])
    _limit_cpu(exercise)
    found = {**namespace, **step["texts"]}
    answers = gather_answers(exercise, found)
    while True:
        kind, parts = channel.receive()
        if kind != "case":
            return
        case = case_from_tree(type(exercise.public[0]), parts["case"])
        if isinstance(answers, Trouble):
            run = Observation(case, parts["tree"], trouble=answers)
        else:
            run = observe(exercise, answers, case, parts["tree"])
        said = {"got": run.got, "back": run.back, "measured": dict(run.measured)}
        channel.send("observed", {**said, "trouble": trouble_to_tree(run.trouble)})


def _limit_cpu(exercise: Exercise) -> None:
    """A kernel limit over all cases, so that swallowing the signals buys no time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime + (exercise.run.cpu_s or exercise.run.wall_s)) + GRACE_S
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
