"""Lab 07's file of tokens is larger than the memory of the job that reads it, whatever that job says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grading.demo.examples import cell_of
from grading.isolation.tiers import tier_named
from grading.supervisor import Job, Sandbox, grade_job
from grading.supervisor.result import ExerciseResult
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.check.text import as_text
from tests.exercises.harness import solution_of
from tests.grading.shared_sandboxes import shared_sandbox
from tests.lanes import MOSTLY_LATER, require_tier

ID = "07-memory-map"
LOADS_ALL = 'np.memmap(path + ".bin", dtype=dtype, mode="r")', 'np.fromfile(path + ".bin", dtype=dtype)'
LIES = """
import labkit.exercises.lab07.memory_map as asked
import tracemalloc

asked.own_bytes = lambda: 0
tracemalloc.get_traced_memory = lambda: (0, 0)
"""
LIFTS = """
import resource

_, most = resource.getrlimit(resource.RLIMIT_DATA)
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
resource.setrlimit = lambda *limit: None
"""
# Room that a cell has mapped before the limit was set.
PREPARES = "import mmap\nroom = mmap.mmap(-1, 600 * 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
INTO_THE_ROOM = (
    LOADS_ALL[0],
    'np.frombuffer(room, dtype=dtype, count=os.path.getsize(path + ".bin") // np.dtype(dtype).itemsize)\n'
    '        with open(path + ".bin", "rb") as file:\n'
    "            file.readinto(self.tokens.view(np.uint8))",
)
pytestmark = [pytest.mark.slow, pytest.mark.lab("07")]


@pytest.fixture(scope="module", params=MOSTLY_LATER)
def server(request) -> Iterator[Sandbox]:
    require_tier(request.param)
    yield shared_sandbox(tier_named(request.param))


def graded(server: Sandbox, *cells: str) -> ExerciseResult:
    setup = cell_of("07", "07-setup")
    steps = [RunCode(f"c{at}", source) for at, source in enumerate((setup, *cells[:-1]))]
    steps += [RunCode(ID, cells[-1]), ServeExercise(f"{ID}-check", ID)]
    return grade_job(server, Job("07_data_loading", "ada", "1", tuple(steps), (setup, *cells), (), b"key")).exercises[
        ID
    ]


def test_a_map_passes(server) -> None:
    result = graded(server, solution_of(ID))
    assert result.public.passed and result.hidden.passed, as_text(result.hidden)


def test_threads_that_have_ended_hold_no_memory(server) -> None:
    """In the answer's own cell, which runs however often the exercise is tried."""
    had = "import threading, time\nthreads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(6)]\n"
    had += "for thread in threads:\n    thread.start()\nfor thread in threads:\n    thread.join()\n"
    result = graded(server, had + solution_of(ID))
    assert result.public.passed and result.hidden.passed, as_text(result.hidden)


@pytest.mark.parametrize(
    ("before", "change"),
    [((), LOADS_ALL), ((LIES, LIFTS), LOADS_ALL), ((LIES, PREPARES), INTO_THE_ROOM)],
    ids=["loads all", "lifts its limit", "has prepared the room"],
)
def test_a_file_in_memory_fails_whatever_the_process_says(server, before: tuple[str, ...], change) -> None:
    answer = "import os\n" + solution_of(ID).replace(*change)
    result = graded(server, *before, answer)
    assert result.public.passed == bool(before), as_text(result.public)
    # What fails on public cases is not tried on hidden ones.
    assert result.hidden is None or not result.hidden.passed, as_text(result.hidden)
