"""An answer given as source text, run and judged on public or hidden cases in this process.

Trusted answers only: nothing is isolated here. What students hand in goes through `supervisor`.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType

import torch

from grading.demo.examples import cell_of
from grading.hidden import Secret, hidden_of
from labkit import exercises
from labkit.check.api import public_runs
from labkit.check.judge import judge
from labkit.check.verdict import Verdict
from labkit.forbids import find_forbidden, refusal
from labkit.observe import gather_answers, known_settings, make_inputs, observe, observe_full_size
from labkit.oracles import oracle_of
from labkit.spec import Case, CaseRun, Exercise, Hint, Observation, Oracle, Rivals, Tree, Trouble
from labkit.tree import clone

NO_INPUTS: Tree = {}
"""Of an answer that is refused before any case is run."""


@contextmanager
def running(exercise_id: str, source: str) -> Iterator[dict[str, object]]:
    """The names that a cell with this source defines, after the lab's set-up cell; or its text, if that is asked.

    Until the end they are those of `__main__`, as in a notebook and in the grader: torch.export and pickle look a
    function's globals up there.
    """
    answers = exercises.find(exercise_id).answers
    if all(answer.kind == "text" for answer in answers):
        yield {answer.name: source for answer in answers}
        return
    before, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        namespace = vars(sys.modules["__main__"])
        exec(cell_of(exercise_id[:2], f"{exercise_id[:2]}-setup"), namespace)
        # Triton reads a kernel's source where Python keeps that of cells.
        linecache.cache["<answer>"] = (len(source), None, source.splitlines(keepends=True), "<answer>")
        exec(compile(source, "<answer>", "exec"), namespace)
        yield namespace
    finally:
        sys.modules["__main__"] = before


def answers_in(exercise_id: str, source: str) -> dict[str, object]:
    """The same names, to be called while something else is `__main__`."""
    with running(exercise_id, source) as found:
        return found


class CaseSet:
    """The public or the hidden cases of an exercise, for many answers: inputs and expectations are made once.

    An expectation is shared where it reads nothing but the case and its inputs; each answer gets its own otherwise.
    """

    def __init__(self, exercise_id: str, secret: Secret | None = None, memory_cases: bool = False) -> None:
        """secret: draws the hidden cases from it; None: the public ones. memory_cases: the large ones as well."""
        exercise, self.oracle = exercises.find(exercise_id), oracle_of(exercise_id)
        self._secret, self._expect, self._inputs = secret, self.oracle.expect, {}
        self.cases = exercise.public
        if secret:
            hidden, rng = hidden_of(exercise_id), secret.draw(exercise_id)
            self.cases = hidden.cases(rng)
            if memory_cases:
                self.cases = (*self.cases, *hidden.memory_cases(rng))
            self._expect = hidden.expect or self._expect
        self._make_inputs = exercise.inputs
        self.exercise = replace(exercise, inputs=self._shared_inputs)
        self.slips: list[str] = []
        """Hints whose condition names what there is not, in the judge's eyes a no: a slip of the oracle's author."""
        self.oracle = replace(self.oracle, diagnose=tuple(map(self._listening, self.oracle.diagnose)))
        if self._expect and len({id(case) for case in self.cases}) == len(self.cases):
            self._expect = _shared_expectation(self._expect)

    def runs(self, source: str, forbids: bool = True) -> list[Observation]:
        """What an answer does on the cases. forbids: whether calls that are forbidden are looked for first."""
        exercise = self.exercise if forbids else replace(self.exercise, forbids=())
        with running(exercise.id, source) as found:
            if self._secret:
                runs = self._hidden_runs(exercise, found, source)
            else:
                with known_settings():
                    runs = public_runs(exercise, found, [source])
            if exercise.full_size and self.verdict(runs).passed:
                runs.append(observe_full_size(exercise, gather_answers(exercise, found)))
            return runs

    def verdict(self, runs: list[Observation], oracle: Oracle | None = None) -> Verdict:
        """The verdict on such runs. oracle: judges in place of the exercise's own."""
        if oracle is None:
            oracle = replace(self.oracle, expect=self._expect)
        with known_settings():
            return judge(self.exercise, oracle, runs, n_cases=1 if runs[0].tree is NO_INPUTS else len(self.cases))

    def _listening(self, entry: Hint | Rivals) -> Hint | Rivals:
        if isinstance(entry, Rivals):
            return Rivals(tuple(map(self._listening, entry.hints)))

        def when(run: CaseRun) -> object:
            try:
                return entry.when(run)
            except (AttributeError, NameError) as error:
                if is_slip(error):
                    slip = f"the condition of the hint {entry.text!r} raised {type(error).__name__}: {error}"
                    self.slips += [slip] if slip not in self.slips else []
                raise

        return replace(entry, when=when)

    def _hidden_runs(self, exercise: Exercise, found: dict[str, object], source: str) -> list[Observation]:
        answers = gather_answers(exercise, found)
        if isinstance(answers, Trouble):
            return [Observation(self.cases[0], NO_INPUTS, trouble=answers)]
        if call := find_forbidden([source], [answer.name for answer in exercise.answers], exercise.forbids):
            return [Observation(self.cases[0], NO_INPUTS, trouble=refusal(call))]
        runs: list[Observation] = []
        for index, case in enumerate(self.cases):
            tree = make_inputs(exercise, case, self._secret.draw(exercise.id, f"inputs {index}").getrandbits(63))
            runs.append(observe(exercise, answers, case, tree))
            if runs[-1].trouble and runs[-1].trouble.kind != "raised":
                break
        return runs

    def _shared_inputs(self, case: Case, generator: torch.Generator) -> Tree:
        key = (id(case), generator.initial_seed())
        if key not in self._inputs:
            self._inputs[key] = self._make_inputs(case, generator)
        return clone(self._inputs[key])


def is_slip(error: AttributeError | NameError) -> bool:
    """Whether a condition misspells a name; a value of a student's that is no tensor lacks attributes as well."""
    return isinstance(error, NameError) or isinstance(error.obj, CaseRun | ModuleType | torch.Tensor)


class _Inputs:
    """Of a run what there is before the answer has run; asking for anything else raises."""

    def __init__(self, run: CaseRun) -> None:
        self.case, self.tree = run.case, run.tree

    def memo(self, work: Callable, *more: object) -> object:
        return work(self, *more)


def _shared_expectation(expect: Callable[[CaseRun], Tree]) -> Callable[[CaseRun], Tree]:
    """`expect`, asked once for each case, if it can answer before the run."""
    known: dict[int, Tree] = {}

    def shared(run: CaseRun) -> Tree:
        if id(run.case) not in known:
            try:
                known[id(run.case)] = expect(_Inputs(run))
            except Exception:
                # It asks for more; a fault of its own it shows once more.
                return expect(run)
        return clone(known[id(run.case)])

    return shared
