"""Exercises that are run apart from a notebook's other steps: by several ranks, or by several jobs on a store.

Every rank and every job runs the cells by itself, so first only those that the answer needs. Which these are is read
from the text, which can be wrong: an answer that fails is run once more after all its cells, and only that counts
against it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grading.isolation.sandbox import Sandbox
from grading.rebuild.dependencies import needed
from grading.supervisor.attempts import run_steps
from grading.supervisor.cases import CaseSet
from grading.supervisor.limits import CELL_LIMITS, CellLimits
from grading.supervisor.ranks.run import run_in_ranks
from grading.supervisor.store.run import run_with_store
from grading.supervisor.transcript import Transcript
from grading.worker.protocol.steps import RunCode, ServeExercise, Step, exercise_of
from labkit import exercises
from labkit.check.verdict import Verdict
from labkit.spec import Exercise

_NOTHING_TO_GAIN = ("passed", "unanswered", "limit")
ONLY_TOGETHER = (
    "It passes in a notebook, where all ranks are in one process, and not here, where each has one of its own. "
    "Whatever a rank needs of another has to come through `comm`: not through a global variable, a class or a file."
)
ONLY_REMEMBERED = (
    "It passes in a notebook, where all jobs are in one process, and not here, where each has one of its own. Whatever "
    "a job needs of the one before has to come from the store: not from a global variable, a class or a file."
)


def is_ranked(exercise: Exercise) -> bool:
    """Whether the exercise runs as several ranks, also where a case of it has one alone."""
    return exercise.run.ranks != 1


def runs_apart(exercise: Exercise) -> bool:
    """Whether the exercise has jobs of its own: for its ranks, or one after the other on a store."""
    return is_ranked(exercise) or exercise.run.store


def only_needed(steps: Sequence[Step], exercise: Exercise) -> list[Step]:
    """The exercise, after the cells that its answers are made in and that those look names up in."""
    cells = [(step.cell_id, step.source) for step in steps if isinstance(step, RunCode)]
    kept = needed(cells, [answer.name for answer in exercise.answers])
    return [step for step in steps if step.cell_id in kept or exercise_of(step) == exercise.id]


def without_apart(steps: Sequence[Step]) -> list[Step]:
    """The steps less the exercises that are run apart."""
    return [
        step
        for step in steps
        if not isinstance(step, ServeExercise) or not runs_apart(exercises.find(step.exercise_id))
    ]


def run_all(sandbox: Sandbox, steps: Sequence[Step], case_sets: Mapping[str, CaseSet]) -> Transcript:
    """As `run_steps`, for steps that may have exercises among them that run apart; these run after all their cells.

    Raises InfrastructureFault when the trouble is ours.
    """
    transcript = run_steps(sandbox, without_apart(steps), case_sets)
    apart = ApartSchedule(sandbox, steps, transcript)
    for exercise in (exercises.find(step.exercise_id) for step in steps if isinstance(step, ServeExercise)):
        if runs_apart(exercise):
            found = apart.run(exercise, case_sets[exercise.id])
            transcript.exercises |= found.exercises
            transcript.readings |= found.readings
    transcript.cpu_s += apart.cpu_s
    return transcript


@dataclass
class ApartSchedule:
    """Runs the exercises of one submission that run apart, after its other steps were run.

    first: what came of those; a cell that did not end is not run again. Their time counts from here on.
    """

    sandbox: Sandbox
    steps: Sequence[Step]
    first: Transcript
    limits: CellLimits = CELL_LIMITS
    cpu_s: float = 0.0

    def __post_init__(self) -> None:
        self._ends_at = time.monotonic() + self.limits.submission_s

    def verdict(self, exercise: Exercise, cases: CaseSet, judged: Callable[[Transcript], Verdict]) -> Verdict:
        """Run an exercise and judge it, after the cells it needs or, where that does not do, after all cells.

        An answer that fails only because its ranks or jobs are processes has that for a hint.
        """
        every = self._until(exercise)
        few = only_needed(every, exercise)
        verdict = judged(self._run(few, exercise, cases))
        if verdict.outcome not in _NOTHING_TO_GAIN and len(few) < len(every):
            verdict = judged(self._run(every, exercise, cases))
        if verdict.outcome == "failed" and not cases.is_sealed:
            # As the student has seen it: in a notebook the ranks are threads of one process, and so are jobs.
            together = run_steps(self.sandbox, few, {exercise.id: cases})
            self.cpu_s += together.cpu_s
            if judged(together).score > 0:
                return replace(verdict, hint=ONLY_TOGETHER if is_ranked(exercise) else ONLY_REMEMBERED)
        return verdict

    def run(self, exercise: Exercise, cases: CaseSet) -> Transcript:
        """Run an exercise after all its cells."""
        return self._run(self._until(exercise), exercise, cases)

    def _until(self, exercise: Exercise) -> list[Step]:
        """The cells before the exercise that end, and the exercise."""
        found = []
        for step in self.steps:
            if exercise_of(step) == exercise.id:
                return [*found, step]
            if isinstance(step, RunCode) and not self.first.cells[step.cell_id].skipped:
                found.append(step)
        raise LookupError(f"{exercise.id} is none of the steps")

    def _run(self, steps: Sequence[Step], exercise: Exercise, cases: CaseSet) -> Transcript:
        found = Transcript()
        if time.monotonic() > self._ends_at:
            found.exercises[exercise.id] = [cases.inputs[0].without_run(self.limits.out_of_time())]
            return found
        run_apart = run_in_ranks if is_ranked(exercise) else run_with_store
        ran = run_apart(self.sandbox, steps, exercise, cases, self.limits)
        self.cpu_s += ran.cpu_s
        found.exercises[exercise.id], found.readings[exercise.id] = ran.runs, ran.readings
        return found
