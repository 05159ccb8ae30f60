"""Lab 09: what is asked, given and run for reading a profiler's trace, and for taking one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.lab09.traces import (
    MARK_IN_ANOTHER_CASE,
    TENSOR_CORE_MARKS,
    TWO_MARKS,
    Recording,
    after_all_others,
    as_events,
    evaluation_ops,
    record,
    step_ops,
)
from labkit.spec import Answer, Case, Exercise, Run

ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
"""The categories of what the device runs."""
CALL = "call"
NOT_ANSWERED = "not answered yet"
TASKS = {"work": "gpu_work", "report": "gpu_report", "own": "profile_steps"}
"""The function that each part of the result comes from, in the order in which they are written."""
QUIET = ("KINETO_LOG_LEVEL", "6")
"""A variable of the environment, and the value at which PyTorch's tracer writes nothing to stderr."""


@dataclass(frozen=True)
class Session(Case):
    """A trace of n_cold + n_steps training steps, of which the last n_steps count, and of an evaluation after them.

    launch_us: host time of a launch. kernel_scale: how long kernels take. waits: whether each step ends with a wait.
    The student's own profiler shall record n_active calls behind n_unsteady.
    """

    n_cold: int = 2
    n_steps: int = 2
    n_layers: int = 2
    launch_us: float = 8.0
    kernel_scale: float = 1.0
    waits: bool = False
    reduces: bool = True
    n_unsteady: int = 2
    n_active: int = 3


def session_inputs(case: Session, gen: torch.Generator) -> dict[str, object]:
    """jitter: a factor on the time of every operation."""
    n_ops = sum(map(len, steps_of(case))) + len(evaluation_ops())
    return {"jitter": 0.6 + 0.8 * torch.rand(n_ops, generator=gen)}


def steps_of(case: Session) -> list[list]:
    total = case.n_cold + case.n_steps
    return [step_ops(case.n_layers, warm=number >= case.n_cold, reduces=case.reduces) for number in range(total)]


def recording_of(case: Session, tree: dict) -> Recording:
    """What the model of a GPU did: all steps, and the evaluation."""
    return record(
        steps_of(case), tree["jitter"].tolist(), case.launch_us, case.waits, case.kernel_scale, evaluation_ops()
    )


def steady_events(case: Session, tree: dict) -> list[dict[str, Any]]:
    """The events of the device alone, of a program that had no cold steps; in no order that helps.

    The last kernel but one has a mark of tensor cores in its name, but in another case of the letters; the last has two
    marks.
    """
    steps = steps_of(case)[case.n_cold :]
    recording = record(steps, tree["jitter"].tolist(), case.launch_us, case.waits, case.kernel_scale)
    events = [event for event in as_events(recording) if event.get("cat") in ON_DEVICE]
    end_us = max(event["ts"] + event["dur"] for event in events)
    for name, us in ((MARK_IN_ANOTHER_CASE, 24), (TWO_MARKS, 40)):
        events.append(after_all_others(name, end_us, us * case.kernel_scale))
        end_us += events[-1]["dur"]
    return events[::-1]


def identity(event: object) -> object:
    """An event by what tells it from the others; anything else as it is."""
    return [event.get("cat"), event.get("name"), event.get("ts")] if isinstance(event, dict) else event


def identities(found: list, events: list[dict[str, Any]]) -> list[object]:
    """Those of the events that were found; what is none of them, or was changed, as it is."""
    known = {tuple(map(repr, identity(event))): event for event in events}
    return [
        identity(one) if isinstance(one, dict) and known.get(tuple(map(repr, identity(one)))) == one else one
        for one in found
    ]


def profiled(profile_steps: Callable, case: Session) -> dict[str, object]:
    """calls: how often the step ran. recorded: which of them the profiler has. actions: its schedule's, per call."""
    os.environ.setdefault(*QUIET)
    n_calls = 0

    def step() -> None:
        nonlocal n_calls
        with torch.profiler.record_function(f"{CALL} {n_calls}"):
            torch.ones(4).sin()
        n_calls += 1

    profiler = profile_steps(step, case.n_unsteady, case.n_active)
    if not isinstance(profiler, torch.profiler.profile):
        return {"calls": n_calls, "recorded": None, "actions": []}
    try:
        events = profiler.events() or []
    except AssertionError:
        # Of a profiler that was never on.
        events = []
    names = [event.name for event in events if event.name.startswith(CALL)]
    actions = [profiler.schedule(at).name for at in range(case.n_unsteady + case.n_active)]
    return {"calls": n_calls, "recorded": [int(name.split()[1]) for name in names], "actions": actions}


def drive_profile(ans, case: Session, tree: dict, stage) -> dict[str, object]:
    """work: what gpu_work found. report: of other work. own: what the student's profiler recorded.

    NOT_ANSWERED stands for what a blank function would have made; while all are blank, so is the exercise.
    """
    recording = recording_of(case, tree)
    parts = {
        "work": lambda: identities(ans.gpu_work(as_events(recording), case.n_cold), as_events(recording)),
        "report": lambda: ans.gpu_report(steady_events(case, tree), TENSOR_CORE_MARKS),
        "own": lambda: profiled(ans.profile_steps, case),
    }
    made: dict[str, object] = {}
    for name, make in parts.items():
        try:
            made[name] = make()
        except NotImplementedError:
            made[name] = NOT_ANSWERED
    if all(part is NOT_ANSWERED for part in made.values()):
        raise NotImplementedError
    return made


PROFILE = Exercise(
    id="09-profile",
    title="Read a profiler's trace, and take one",
    points=2,
    optional=True,
    minutes=50,
    difficulty=3,
    answers=(Answer("gpu_work"), Answer("gpu_report"), Answer("profile_steps")),
    public=(
        Session(),
        Session(n_cold=1, n_steps=3, launch_us=40.0, waits=True, n_unsteady=3, n_active=1),
        Session(n_cold=9, n_layers=3, launch_us=4.0, kernel_scale=2.0, n_unsteady=4, n_active=2),
    ),
    inputs=session_inputs,
    drive=drive_profile,
    # The first profiler of a process loads PyTorch's compiler, seconds on a busy machine.
    run=Run(wall_s=30.0),
)
