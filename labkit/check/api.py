"""`check` and `progress`, as a notebook calls them.

Where the expectations are absent (in the grader's sandbox) a check says so and passes on: the verdict is not made
there.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from labkit import exercises
from labkit.check.html import as_html
from labkit.check.judge import judge
from labkit.check.points import in_hundredths
from labkit.check.text import as_text, mark_of
from labkit.check.verdict import Verdict
from labkit.exercises.cuda import cell_of
from labkit.forbids import find_forbidden, program_of, refusal
from labkit.observe import gather_answers, known_settings, make_inputs, observe, observe_full_size, public_seed
from labkit.shell import show
from labkit.spec import Exercise, Observation, Oracle, Trouble

_STOPS = ("unanswered", "wall", "cpu", "memory")


class CheckFailed(AssertionError):
    """The answer did not pass. Carries the verdict; a notebook shows one line of it and no library frame."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(as_text(verdict))
        self.verdict = verdict

    def _render_traceback_(self) -> list[str]:
        # The box above says it all, but nbgrader's Validate shows this line alone.
        alone = "NBGRADER_VALIDATING" in os.environ and self.verdict.hint
        return [f"CheckFailed: {self.verdict.headline}" + (f" Hint: {self.verdict.hint}" if alone else "")]


class VerdictView:
    """A verdict that a notebook shows as a box, and anything else as text."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def __repr__(self) -> str:
        return as_text(self._verdict)

    def _repr_html_(self) -> str:
        return as_html(self._verdict)


def check(exercise_id: str, *answers: object, points: float | None = None) -> None:
    """Check the answers to an exercise on its public cases: `check("02-decode", decode)`.

    Shows one line when they pass and raises CheckFailed when they do not. points: what the course gives for it, where
    that is not what was declared. Raises UnknownExercise for a wrong id and TypeError for a wrong number of answers.
    """
    if not isinstance(exercise_id, str):
        raise TypeError('the exercise\'s id comes first: check("02-decode", decode)')
    exercise = exercises.find(exercise_id)
    if len(answers) != len(exercise.answers):
        names = ", ".join(answer.name for answer in exercise.answers)
        raise TypeError(f'write check("{exercise_id}", {names}): it takes {len(exercise.answers)} answer(s)')
    if not expectations_present():
        print(f"{exercise_id}: checked by the grader")
        return
    from labkit.oracles import oracle_of

    named = {spec.name: answer for spec, answer in zip(exercise.answers, answers, strict=True)}
    exercise = _in_course(exercise, {} if points is None else {exercise_id: points})
    verdict = examine(exercise, oracle_of(exercise_id), named, program_of(answers))
    if verdict.passed and (texts := _texts(exercise, named)):
        _verdicts()[texts] = verdict
    show(VerdictView(verdict))
    if verdict.outcome not in ("passed", "partial"):
        raise CheckFailed(verdict)


def progress(
    lab: str,
    namespace: Mapping[str, object],
    points: Mapping[str, float] | None = None,
    left_out: Collection[str] = (),
) -> None:
    """Check every exercise of a lab again and print a line for each: `progress("02", globals())`.

    points, left_out: what the course changes, by the exercises' ids; an optional one with points counts as core. The
    points of optional exercises are added up by themselves. A script that has passed as it stands is not started
    again. Raises UnknownExercise where there is no such lab.
    """
    found = exercises.of_lab(lab)
    asked = {name: _in_course(one, points or {}) for name, one in found.items() if name not in left_out}
    if not found:
        known = ", ".join(sorted({name[:2] for name in exercises.everything()}))
        raise exercises.UnknownExercise(f'there is no lab "{lab}"; known here: {known}')
    if not expectations_present():
        print(f"lab {lab}: checked by the grader")
        return
    from labkit.oracles import oracle_of

    earned = {False: 0.0, True: 0.0}
    for exercise in asked.values():
        verdict = _verdicts().get(_texts(exercise, namespace))
        verdict = verdict or examine(exercise, oracle_of(exercise.id), namespace, program_of([]))
        points = verdict.score * exercise.points
        earned[exercise.optional] += points
        note = " (optional)" if exercise.optional else ""
        print(f"{mark_of(verdict)} {exercise.id:24} {in_hundredths(points):4g} of {exercise.points:g}{note}")
    print(f"  {'public cases, in all':24} {_sums(earned, asked.values())}")


def _in_course(exercise: Exercise, points: Mapping[str, float]) -> Exercise:
    """With the course's points for it, if it has some of its own."""
    return replace(exercise, points=points[exercise.id], optional=False) if exercise.id in points else exercise


def _sums(earned: Mapping[bool, float], asked: Iterable[Exercise]) -> str:
    """What was earned, by whether it was optional: "15 of 19 points, and 0.9 of 1.8 for what is optional"."""
    most = {kind: sum(exercise.points for exercise in asked if exercise.optional is kind) for kind in earned}
    text = f"{in_hundredths(earned[False]):4g} of {most[False]:g} points"
    return f"{text}, and {in_hundredths(earned[True]):g} of {most[True]:g} for what is optional" if most[True] else text


@functools.cache
def _verdicts() -> dict[tuple[str, ...], Verdict]:
    """This process's own: what passed, by exercise and texts, on which alone it depends. Starting it takes seconds."""
    return {}


def _texts(exercise: Exercise, found: Mapping[str, object]) -> tuple[str, ...]:
    """An exercise's id and its answers, where they are texts; else nothing."""
    texts = tuple(found.get(answer.name) for answer in exercise.answers if answer.kind == "text")
    whole = len(texts) == len(exercise.answers) and all(isinstance(text, str) for text in texts)
    return (exercise.id, *texts) if whole else ()


def examine(exercise: Exercise, oracle: Oracle, found: Mapping[str, object], program: Sequence[str] = ()) -> Verdict:
    """Run the public cases on the answers in `found` and judge them. Prints and raises nothing of its own."""
    with known_settings():
        runs = public_runs(exercise, found, program)
        verdict = judge(exercise, oracle, runs, n_cases=len(exercise.public))
        if not verdict.passed or exercise.full_size is None:
            return verdict
        # Compiling takes seconds, so it is left to those that pass everything else.
        runs.append(observe_full_size(exercise, gather_answers(exercise, found)))
        return judge(exercise, oracle, runs, n_cases=len(exercise.public))


def public_runs(exercise: Exercise, found: Mapping[str, object], program: Sequence[str] = ()) -> list[Observation]:
    """What `examine` judges: one run for each public case, or fewer where the last one's trouble ends the rest."""
    names = [answer.name for answer in exercise.answers]
    if not exercise.run.cells:
        # As the grader has them, which is given the text of a cell.
        cells = {name: cell_of(program, name) for name in names}
        found = {**found, **{name: cell for name, cell in cells.items() if cell is not None}}
    answers = gather_answers(exercise, found)
    if isinstance(answers, Trouble):
        return [Observation(exercise.public[0], {}, trouble=answers)]
    if forbidden := find_forbidden(program, names, exercise.forbids):
        return [Observation(exercise.public[0], {}, trouble=refusal(forbidden))]
    runs: list[Observation] = []
    for index, case in enumerate(exercise.public):
        tree = make_inputs(exercise, case, public_seed(exercise.id, index))
        runs.append(observe(exercise, answers, case, tree))
        if runs[-1].trouble and runs[-1].trouble.kind in _STOPS:
            break
    return runs


def expectations_present() -> bool:
    """Whether this process can see the expected values; the grader's workers cannot."""
    return importlib.util.find_spec("labkit.oracles") is not None
