"""No answer gets a point that the honest equivalent would not earn."""

from __future__ import annotations

import time

import pytest
import torch

from grading.rebuild.dependencies import needed
from grading.supervisor.job import Job
from grading.supervisor.result import ExerciseResult
from grading.supervisor.verdicts import disguises
from labkit import exercises
from labkit.check.judge import judge
from labkit.check.verdict import Verdict
from labkit.forbids import find_forbidden
from labkit.oracles import oracle_of
from labkit.spec import Case, Hint, Observation, Oracle
from tests.grading.steps import DOUBLE, GOOD, code, graded

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]


def test_a_result_that_the_judge_stumbles_over_is_suspected(sandbox, monkeypatch) -> None:
    def stumble(*_args, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr("grading.supervisor.verdicts.judge", stumble)
    found = graded(sandbox, code("99-double", GOOD), DOUBLE).exercises["99-double"]
    assert (found.outcome, found.score) == ("suspected", 0.0)


def test_a_name_that_an_answer_hides_is_a_persons_to_look_at() -> None:
    hides = "import math\ndef naive_sum(x):\n    return getattr(math, 'f' + 'sum')(x)"
    job = Job("02_float_formats", "ada", "1", (), (hides,), (), b"")
    passed = Verdict("02-sums", "passed", 1.0, "right")
    (note,) = disguises(job, {"02-sums": ExerciseResult(passed, passed)})
    assert note.startswith("02-sums forbids calls by name") and "getattr, line 3: return getattr(math" in note
    failed = ExerciseResult(Verdict("02-sums", "failed", 0.0, "wrong"), None)
    assert disguises(job, {"02-sums": failed}) == []


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "%matplotlib inline\n{}",
        "!true\n{}",
        "if True:\n{indented}",
        "try:\n{indented}\nfinally:\n    pass",
        "for _ in range(1):\n{indented}",
    ],
)
def test_a_forbidden_call_is_found_however_its_cell_is_dressed(wrap: str) -> None:
    from grading.rebuild.merge import _plain_python

    source = "import math\ndef naive_sum(x):\n    return math.fsum(x)"
    dressed = wrap.format(source, indented="\n".join("    " + line for line in source.splitlines()))
    assert find_forbidden([_plain_python(dressed)], ["naive_sum"], ("math.fsum",)).name == "math.fsum"


def test_both_branches_of_a_definition_are_read() -> None:
    source = "import math\nif 1:\n    def f(x): return math.fsum(x)\nelse:\n    def f(x): return 0"
    assert find_forbidden([source], ["f"], ("math.fsum",))


def test_reading_a_program_takes_no_longer_than_its_length_warrants() -> None:
    names = ", ".join(f"a{n}" for n in range(3000))
    source = f"{names} = {names}\ndef f(x): return a0"
    began = time.process_time()
    assert find_forbidden([source], ["f"], ("math.fsum",)) is None
    assert needed([("demo", "a1 = 1")], [source]) == {"demo"}
    assert time.process_time() - began < 5


def test_no_runs_are_no_pass() -> None:
    warm_up = exercises.find("00-warm-up")
    verdict = judge(warm_up, oracle_of("00-warm-up"), [], n_cases=7)
    assert verdict.score == 0 and dict(verdict.rows)["problem"] == "not every case was run"


def test_a_giant_result_is_wrong_without_a_diagnosis() -> None:
    """Broadcast against what it should have been, it could take all memory."""
    seen = []
    hints = (Hint(seen.append, "?"),)
    small = {"x": torch.zeros(4)}
    for expect, n, looked_at in (
        (lambda run: {"out": run.tree["x"]}, 4, True),
        (lambda run: {"out": run.tree["x"]}, 5, True),
        (lambda run: {"out": run.tree["x"]}, 100_000, False),
        (lambda run: {"out": torch.zeros(3_000_000)}, 3_000_000, True),
        (None, 100_000, True),
        (None, 3_000_000, False),
    ):
        seen.clear()
        oracle = Oracle("x", expect=expect, judge=(lambda run: "no",), diagnose=hints)
        run = Observation(Case(), small, got={"out": torch.ones(n)}, back=small)
        assert judge(exercises.find("00-warm-up"), oracle, [run]).score == 0
        assert bool(seen) == looked_at, n
