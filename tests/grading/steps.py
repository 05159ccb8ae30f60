"""A submission to lab 99, step by step: its cells and exercises, run in a sandbox without a notebook or a course."""

from __future__ import annotations

from grading.supervisor import Job, Sandbox, grade_job
from grading.supervisor.attempts import run_steps
from grading.supervisor.limits import CellLimits
from grading.worker.protocol.control import JobEnded
from grading.worker.protocol.steps import RunCode, ServeExercise, Step

GOOD = "def double(x):\n    return x * 2"
SWALLOWS = "\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"


def code(name: str, source: str) -> RunCode:
    return RunCode(name, source)


def exercise(name: str) -> ServeExercise:
    return ServeExercise(f"{name}-check", name)


DOUBLE = exercise("99-double")


def graded(sandbox: Sandbox, *steps: Step, student: str = "ada", attempt: str = "1"):
    program = tuple(step.source for step in steps if isinstance(step, RunCode))
    return grade_job(sandbox, Job("99_test", student, attempt, steps, program, (), b"key"))


def outcome(sandbox: Sandbox, *steps: Step) -> str:
    return graded(sandbox, *steps).exercises["99-double"].outcome


def count_cpu(sandbox: Sandbox, monkeypatch) -> list[float]:
    """A list that the CPU time of every job is put into from now on, in seconds."""
    counted, kill_job = [], sandbox.kill_job

    def counting() -> JobEnded:
        ended = kill_job()
        counted.append(ended.cpu_s)
        return ended

    monkeypatch.setattr(sandbox, "kill_job", counting)
    return counted


PATIENT = CellLimits(one_s=250.0, all_s=250.0)
"""For cells that nothing is wrong with, where others use the machine as well."""


def what_cells_print(sandbox: Sandbox, source: str) -> str:
    return run_steps(sandbox, [code("a", source)], {}, PATIENT).cells["a"].printed.strip()
