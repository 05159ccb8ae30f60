"""Lab 15's exercises of several ranks graded in earnest, each rank a process of its own behind the router."""

from __future__ import annotations

import os

import pytest

from grading.isolation.plan import FULL
from grading.isolation.probe import try_tier
from grading.supervisor import Forkserver, Job, grade_job
from grading.supervisor.result import ExerciseResult
from labkit.check.text import as_text
from tests.exercises.harness import TESTS, answer_files, solution_of

IDS = ("15-ddp", "15-no-sync", "15-amp-clip", "15-sync-bn")
RIGHT = [path for path in answer_files("right") if path.stem.startswith(tuple(f"{name}__" for name in IDS))]
WRONG = (
    "15-ddp__waits-in-the-hook",
    "15-ddp__one-call-per-parameter",
    "15-ddp__sends-what-is-ready",
    "15-no-sync__talks-every-time",
    "15-amp-clip__decides-per-rank",
    "15-sync-bn__three-calls",
)
CHEATS = {
    # Every rank reads in this dictionary what the others have written there.
    "15-sync-bn": """
TOLD = {}


def sync_batch_norm(comm, x, running_mean, running_var, weight, bias, momentum, eps):
    TOLD[comm.rank] = x
    comm.barrier()
    rows = torch.cat([TOLD[rank] for rank in range(comm.world_size)])
    out = F.batch_norm(rows, running_mean, running_var, weight, bias, True, momentum, eps)
    comm.barrier()
    return out.split([len(TOLD[rank]) for rank in range(comm.world_size)])[comm.rank]
""",
    # The clock of the backward passes is stopped.
    "15-ddp": solution_of("15-ddp").replace("self.begin()", "module.comm = None\n        self.begin()", 1),
}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    # With what the grader preloads for a lab that has optimizers: every rank would load it anew.
    best = "kernel" if try_tier("kernel").works else "none"
    with Forkserver(os.environ.get("LABS_ISOLATION", best), preload=FULL) as found:
        yield found


def graded(server, exercise_id: str, source: str) -> ExerciseResult:
    set_up = solution_of("15-setup")
    steps = (
        {"id": "15-setup", "do": "code", "source": set_up},
        {"id": exercise_id, "do": "code", "source": source},
        {"id": f"{exercise_id}-check", "do": "exercise", "exercise": exercise_id, "texts": {}},
    )
    job = Job("15_ddp", "ada", "1", steps, (set_up, source), (), b"key")
    return grade_job(server, job).exercises[exercise_id]


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes(server, exercise_id: str) -> None:
    result = graded(server, exercise_id, solution_of(exercise_id))
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_an_unusual_right_answer_passes(server, path) -> None:
    result = graded(server, path.stem.split("__")[0], path.read_text())
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


@pytest.mark.parametrize("name", WRONG)
def test_what_fails_on_the_simulator_fails_here_with_the_same_hint(server, name: str) -> None:
    source = (TESTS / "wrong" / f"{name}.py").read_text()
    verdict = graded(server, name.split("__")[0], source).public
    hint = source.splitlines()[0].removeprefix("#").strip()
    assert verdict.score == 0 and hint in (verdict.hint or ""), as_text(verdict)


@pytest.mark.parametrize("exercise_id", list(CHEATS))
def test_what_does_not_go_through_the_router_gains_nothing(server, exercise_id: str) -> None:
    result = graded(server, exercise_id, CHEATS[exercise_id])
    assert result.public.score == 0, as_text(result.public)
