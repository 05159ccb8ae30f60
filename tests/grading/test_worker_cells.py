"""The cells of a submission: one that breaks, hangs or prints without end costs only itself."""

from __future__ import annotations

import pytest

from grading.supervisor.attempts import run_steps
from grading.supervisor.limits import CellLimits
from tests.grading.steps import DOUBLE, PATIENT, code, outcome, what_cells_print

pytestmark = pytest.mark.usefixtures("lab99")


def test_check_in_a_students_cell_does_nothing_there(sandbox) -> None:
    source = "from labkit import check\ndef rms(x, dim): return 0\ncheck('00-warm-up', rms)"
    assert what_cells_print(sandbox, source) == "00-warm-up: checked by the grader"


def test_printed_text_is_cut_and_says_so(sandbox) -> None:
    printed = what_cells_print(sandbox, "print('x' * 1_000_000)")
    assert len(printed) < 70_000 and printed.endswith("934,465 more characters were cut]")


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError('no')",
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import ctypes; ctypes.string_at(0)",
        "def broken(:",
        "while True: pass",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
        "import os\nos.killpg(0, 9)",
        "x = bytearray(64 * 2**30)",
    ],
)
def test_a_cell_that_breaks_costs_only_itself(sandbox, source: str) -> None:
    steps = [
        code("a", "before = 2"),
        code("bad", source),
        code("99-double", "def double(x): return x * before"),
        DOUBLE,
    ]
    fed_nothing = run_steps(sandbox, steps[:3], {}, CellLimits(one_s=2.0) if "while" in source else PATIENT)
    assert not fed_nothing.cells["bad"].ok and fed_nothing.cells["bad"].error
    assert fed_nothing.cells["99-double"].ok
    if "while" not in source:
        assert outcome(sandbox, *steps) == "passed"


def test_cells_that_hang_again_and_again_come_to_an_end(sandbox) -> None:
    steps = [code(f"c{n}", "while True: pass") for n in range(20)]
    transcript = run_steps(sandbox, steps, {}, CellLimits(one_s=0.3, submission_s=1.0))
    assert len(transcript.cells) == 20
    assert "used more than 1 s" in transcript.cells["c19"].error
