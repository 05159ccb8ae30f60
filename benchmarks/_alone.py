"""The checks' own computing: run by itself (`python -m benchmarks._alone COURSE LAB`), it grades in one process.

The same cells, cases, expected values and judging as the grader's, once each, with no worker, sandbox, second run,
gradebook or limit: for solutions only. The last line of its output is JSON: an Alone's figures for each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from statistics import median

import torch

from benchmarks._meter import REPO, environment
from grading.course import Course
from grading.hidden import Secret, hidden_of
from grading.submissions import prepare
from grading.supervisor import Job
from grading.supervisor.cases import CaseInputs, hidden_cases, public_cases
from grading.worker.cells import Shell
from grading.worker.protocol.steps import ServeExercise
from labkit import exercises
from labkit.check.judge import judge
from labkit.observe import gather_answers, observe
from labkit.oracles import oracle_of
from labkit.spec import Exercise, Observation


@dataclass(frozen=True)
class Alone:
    """Seconds for one submission (medians): wall time, CPU time, and the CPU time of making inputs and judging."""

    wall_s: float
    cpu_s: float
    judge_cpu_s: float


def measure(course: Course, lab: str) -> Alone:
    """In a fresh process. Raises RuntimeError where a check does not pass."""
    command = [sys.executable, "-m", "benchmarks._alone", str(course.root), lab]
    done = subprocess.run(command, cwd=REPO, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the checks alone: {done.stderr[-2000:]}")
    seconds = json.loads(done.stdout.splitlines()[-1])
    # The first one finds nothing loaded yet.
    return Alone(*(median(figures) for figures in zip(*seconds[1:], strict=True)))


def main(root: str, lab: str) -> None:
    torch.set_num_threads(1)
    course = Course.at(root)
    jobs = [prepare(course, lab, lab, student).job for student in course.students(lab)]
    seconds = [_seconds(job, Shell()) for job in jobs]
    sys.stdout.write("\n" + json.dumps(seconds) + "\n")


def _seconds(job: Job, shell: Shell) -> tuple[float, float, float]:
    """As in Alone."""
    secret = Secret(job.course_key, job.lab, job.student, job.attempt)
    began, began_cpu, judge_s = time.perf_counter(), time.process_time(), 0.0
    for step in job.steps:
        if not isinstance(step, ServeExercise):
            shell.run(step.source)
            continue
        exercise = exercises.find(step.exercise_id)
        answers = gather_answers(exercise, {**shell.namespace, **step.texts})
        for is_hidden in (False, True):
            drawn = time.process_time()
            cases = hidden_cases(exercise, secret) if is_hidden else public_cases(exercise)
            ran = time.process_time()
            runs = [_observed(exercise, answers, inputs) for inputs in cases.inputs]
            judged = time.process_time()
            expect = hidden_of(exercise.id).expect if is_hidden else None
            verdict = judge(exercise, oracle_of(exercise.id), runs, expect, n_cases=len(cases.inputs))
            judge_s += ran - drawn + time.process_time() - judged
            if not verdict.passed:
                raise RuntimeError(f"{job.student}: {verdict.headline} {verdict.rows}")
    return time.perf_counter() - began, time.process_time() - began_cpu, judge_s


def _observed(exercise: Exercise, answers: object, inputs: CaseInputs) -> Observation:
    run = observe(exercise, answers, inputs.case, inputs.tree, lend=inputs.bounds_memory)
    # What was lent does not come back, here as in the grader.
    return replace(run, back=inputs.tree) if inputs.bounds_memory else run


if __name__ == "__main__":
    main(*sys.argv[1:])
