"""What an answer's run comes to: the outcome, the score, and what the student is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labkit import exercises
from labkit.check.api import examine
from labkit.oracles import oracle_of
from tests.exercises.kinds import RING as ALL_REDUCE
from tests.grading.steps import DOUBLE, GOOD, SWALLOWS, code, exercise, graded, outcome

pytestmark = pytest.mark.usefixtures("lab99")


def test_a_right_answer_passes_public_and_hidden_cases(sandbox) -> None:
    result = graded(sandbox, code("a", "import torch"), code("99-double", GOOD), DOUBLE)
    found = result.exercises["99-double"]
    assert (found.outcome, found.score, found.public.n_cases, found.hidden.n_cases) == ("passed", 1.0, 2, 2)


def test_right_on_the_public_cases_only(sandbox) -> None:
    source = "def double(x):\n    return x * 2 if len(x) in (4, 7) else x"
    found = graded(sandbox, code("99-double", source), DOUBLE).exercises["99-double"]
    assert found.score == 0 and found.failed_hidden
    assert found.hidden.hint == "This is the input itself."
    assert "the public cases pass" in found.hidden.headline
    shown = found.hidden.redacted()
    assert shown.rows == () and shown.hint == found.hidden.hint


@pytest.mark.parametrize(
    "source",
    [
        "import sys, warnings\nprint('noise', file=sys.stderr)\nwarnings.warn('w')\n" + GOOD,
        "%matplotlib inline\n!echo from a shell\n" + GOOD,
        "print('x' * 60_000_000)\n" + GOOD,
        "import os\nos.write(2, b'to the descriptor')\n" + GOOD,
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n" + GOOD,
        "import torch\ntorch.set_default_dtype(torch.float64)\n" + GOOD,
        "import torch\ntorch.set_grad_enabled(False)\n" + GOOD,
        "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n" + GOOD,
        "import sys\nsys.stdout.close()\n" + GOOD,
        "import sys\nsys.setrecursionlimit(100_000)\n" + GOOD,
        "import time\nclass double:\n    def __new__(cls, x): return x * 2",
    ],
    ids=lambda source: source.splitlines()[0][:40],
)
def test_honest_noise_costs_nothing(sandbox, source: str) -> None:
    assert outcome(sandbox, code("99-double", source), DOUBLE) == "passed"


def test_an_error_inside_of_a_library_is_told_with_the_students_own_line(sandbox) -> None:
    source = "import torch\ndef double(x):\n    return torch.nn.functional.l1_loss(x, x, reduction='of my own')"
    rows = dict(graded(sandbox, code("99-double", source), DOUBLE).exercises["99-double"].public.rows)
    assert rows["at"] == "line 3: return torch.nn.functional.l1_loss(x, x, reduction='of my own')"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("def double(x): return x", "failed"),
        ("def double(x): raise KeyError('k')", "failed"),
        ("def double(x): return None", "failed"),
        ("def double(x): return x.numpy() * 2", "failed"),
        ("def double(x): return (x * 2).double()", "failed"),
        ("def double(x): return (x * 2)[None]", "failed"),
        ("def double(x): return x * float('nan')", "failed"),
        ("def double(x): return x.mul_(2)", "failed"),
        ("def double(x): raise SystemExit", "failed"),
        ("def double(x): raise NotImplementedError('Write your answer here.')", "unanswered"),
        ("double = None", "unanswered"),
        ("double = 3", "failed"),
        ("def other(x): return x", "failed"),
        ("def double(x)\n    return x", "failed"),
        ("import os\ndef double(x): os._exit(0)", "limit"),
        ("import ctypes\ndef double(x): ctypes.string_at(0)", "limit"),
        ("import os\ndef double(x): os.killpg(0, 9)", "limit"),
        ("def double(x):\n    while True: pass", "limit"),
        (f"def double(x):{SWALLOWS}", "limit"),
        ("import time\ndef double(x): time.sleep(60)", "limit"),
        ("def double(x): return bytearray(64 * 2**30)", "limit"),
    ],
)
def test_outcomes_of_wrong_answers(sandbox, source: str, wanted: str) -> None:
    spare = [code("99-slow", "def slow(x): return x"), exercise("99-slow")]
    result = graded(sandbox, code("99-double", source), DOUBLE, *spare)
    assert result.exercises["99-double"].outcome == wanted
    assert result.exercises["99-double"].score == 0
    assert result.exercises["99-slow"].outcome == "passed"


def test_a_failed_cell_is_named_as_the_reason(sandbox) -> None:
    result = graded(sandbox, code("99-double", "def double(x)\n    return x"), DOUBLE)
    assert dict(result.exercises["99-double"].public.rows)["problem"] == (
        "its cell failed: SyntaxError: expected ':' (line 1)"
    )


@pytest.mark.slow
def test_cpu_time_is_limited_and_wall_time_is_not_mistaken_for_it(sandbox) -> None:
    slow = exercise("99-slow")
    busy = "def slow(x):\n    while True: pass"
    found = graded(sandbox, code("99-slow", busy), slow).exercises["99-slow"]
    assert found.outcome == "limit" and "0.5 s of cpu time" in dict(found.public.rows)["problem"]
    assert graded(sandbox, code("99-slow", f"def slow(x):{SWALLOWS}"), slow).exercises["99-slow"].outcome == "limit"
    waiting = "import time\ndef slow(x):\n    time.sleep(1)\n    return x"
    assert graded(sandbox, code("99-slow", waiting), slow).exercises["99-slow"].outcome == "passed"


@pytest.mark.slow
def test_cpu_time_that_native_code_uses_up_is_named_too(sandbox) -> None:
    """No timer of its own process interrupts that; the kernel ends it, and with it the job that was sealed for it."""
    held = "def slow(x):\n    return x + sum(range(10**12)) if len(x) > 4 else x"
    found = graded(sandbox, code("99-slow", held), exercise("99-slow")).exercises["99-slow"]
    assert (found.public.outcome, found.hidden.outcome) == ("passed", "limit")
    assert dict(found.hidden.rows)["problem"] == "it used up its CPU time"
    assert found.hidden.hint.startswith("The values may be right, but the work grows too fast")
    ended = "import os\ndef slow(x):\n    return os._exit(152) if len(x) > 4 else x"
    found = graded(sandbox, code("99-slow", ended), exercise("99-slow")).exercises["99-slow"]
    assert dict(found.hidden.rows)["problem"] == "the process that ran it ended"


def test_a_partial_score_is_capped(sandbox) -> None:
    share = replace(exercise("99-share"), texts={"words": "some words"})
    scores = {"0.25": 0.25, "7.0": 1.0, "-1.0": 0.0, "float('nan')": 0.0}
    for value, wanted in scores.items():
        result = graded(sandbox, code("99-share", f"share = {value}"), share)
        assert result.exercises["99-share"].score == wanted, value


def test_a_budget_is_judged_on_what_was_measured(sandbox) -> None:
    small = "def measured(x): return x.sum()"
    large = "def measured(x): return x.repeat(100).view(100, -1)[0].sum()"
    step = exercise("99-measured")
    assert graded(sandbox, code("99-measured", small), step).exercises["99-measured"].outcome == "passed"
    found = graded(sandbox, code("99-measured", large), step).exercises["99-measured"]
    assert found.outcome == "failed" and found.public.hint == "A copy of everything is too much."


def test_a_hint_sees_what_a_run_held_as_in_the_notebook(sandbox) -> None:
    double = "def measured(x):\n    copies = x.double().repeat(100)\n    return x.sum()"
    found = graded(sandbox, code("99-measured", double), exercise("99-measured")).exercises["99-measured"].public
    verdict = examine(exercises.find("99-measured"), oracle_of("99-measured"), _defined(double), [double])
    assert found.hint == verdict.hint == "The copy is in float64, too."
    for rows in (found.rows, verdict.rows):
        (held, *_) = (text for label, text in rows if label == "held")
        assert held.startswith("781.2 KiB: 100000 float64"), held


def _defined(source: str) -> dict[str, object]:
    namespace: dict[str, object] = {}
    exec(source, namespace)
    return namespace


RING = f"import torch\n\n{ALL_REDUCE}"
EXTRA = """
    work = comm.isend(x, (rank + 1) % n)
    comm.recv(torch.empty_like(x), (rank - 1) % n)
    work.wait()
    return"""


@pytest.mark.parametrize(
    ("source", "outcome", "problem"),
    [
        (RING, "passed", None),
        (RING.replace("isend(parts", "isend(0 * parts"), "failed", "rank 0: wrong value"),
        (RING.replace("    return", EXTRA), "failed", "over budget: bytes sent"),
        (RING.replace("        work.wait()\n", ""), "failed", "started to send to rank 1 and never called wait()"),
        ("def all_reduce(comm, x):\n    comm.recv(x, (comm.rank + 1) % 3)", "failed", "deadlock: rank 0 waits for a"),
        ("def all_reduce(comm, x):\n    if comm.rank: 1 / 0\n    comm.barrier()", "failed", "rank 1: ZeroDivision"),
        ("def all_reduce(comm, x):\n    while True: pass", "limit", "1.5 s of wall time"),
        ("import os\ndef all_reduce(comm, x):\n    os._exit(0)", "limit", "ended"),
    ],
)
def test_several_ranks(sandbox, source: str, outcome: str, problem: str | None) -> None:
    result = graded(sandbox, code("99-all-reduce", source), exercise("99-all-reduce"))
    found = result.exercises["99-all-reduce"]
    assert found.outcome == outcome
    if problem is not None:
        assert problem in dict(found.public.rows)["problem"]
