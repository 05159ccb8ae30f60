"""Examine an answer given as source text, on public or hidden cases, in this process.

Trusted answers only: the supervised path has tests of its own.
"""

from __future__ import annotations

import linecache
from pathlib import Path

from grading.demo.examples import cell_of, solution_of
from grading.hidden import Secret, hidden_of
from labkit import exercises
from labkit.check import Verdict, examine, judge
from labkit.check.api import refusal
from labkit.forbids import find_forbidden
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.spec import Observation, Trouble

__all__ = ["TESTS", "answers_in", "hidden_verdict", "public_verdict", "solution_of"]
TESTS = Path(__file__).resolve().parents[1]
SECRET = Secret(b"a course key for the tests", "lab", "ada", "first")


def answers_in(exercise_id: str, source: str) -> dict[str, object]:
    """The names that a cell with this source defines, after the lab's set-up cell; or its text, if that is asked."""
    answers = exercises.find(exercise_id).answers
    if all(answer.kind == "text" for answer in answers):
        return {answer.name: source for answer in answers}
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(cell_of(exercise_id[:2], f"{exercise_id[:2]}-setup"), namespace)
    # Triton reads a kernel's source where Python keeps that of cells.
    linecache.cache["<answer>"] = (len(source), None, source.splitlines(keepends=True), "<answer>")
    exec(compile(source, "<answer>", "exec"), namespace)
    return namespace


def public_verdict(exercise_id: str, source: str) -> Verdict:
    """What the student reads under the exercise."""
    return examine(exercises.find(exercise_id), oracle_of(exercise_id), answers_in(exercise_id, source), [source])


def hidden_verdict(exercise_id: str, source: str, secret: Secret = SECRET, watched: bool = False) -> Verdict:
    """What the grader concludes from hidden cases drawn from `secret`.

    watched: also from the large ones whose memory the grader watches.
    """
    exercise, hidden = exercises.find(exercise_id), hidden_of(exercise_id)
    names = [answer.name for answer in exercise.answers]
    rng = secret.draw(exercise_id)
    cases = hidden.cases(rng)
    if watched:
        cases = (*cases, *hidden.watched(rng))
    answers = gather_answers(exercise, answers_in(exercise_id, source))
    if isinstance(answers, Trouble):
        return judge(exercise, oracle_of(exercise_id), [Observation(cases[0], {}, trouble=answers)])
    if found := find_forbidden([source], names, exercise.forbids):
        return judge(exercise, oracle_of(exercise_id), [Observation(cases[0], {}, trouble=refusal(found))])
    runs = []
    for index, case in enumerate(cases):
        tree = make_inputs(exercise, case, secret.draw(exercise_id, f"inputs {index}").getrandbits(63))
        runs.append(observe(exercise, answers, case, tree))
        if runs[-1].trouble and runs[-1].trouble.kind != "raised":
            break
    return judge(exercise, oracle_of(exercise_id), runs, hidden.expect, n_cases=len(cases))
