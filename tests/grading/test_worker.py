"""What student code can do to the worker costs the student alone, and only what it touched."""

from __future__ import annotations

import ast
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grading.isolation.sandbox import InfrastructureFault
from grading.isolation.worker_tree import shared_worker_tree
from grading.supervisor import Job, Sandbox, grade_job
from grading.supervisor.attempts import run_steps
from grading.supervisor.limits import CellLimits
from grading.worker.protocol.control import JobEnded
from grading.worker.protocol.steps import RunCode, ServeExercise, Step
from labkit import exercises
from labkit.check.api import examine
from labkit.forking import FORKED_FROM
from labkit.oracles import oracle_of

GOOD = "def double(x):\n    return x * 2"
SWALLOWS = "\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"
pytestmark = pytest.mark.usefixtures("lab99")


def code(name: str, source: str) -> RunCode:
    return RunCode(name, source)


def exercise(name: str) -> ServeExercise:
    return ServeExercise(f"{name}-check", name)


DOUBLE = exercise("99-double")


def graded(sandbox: Sandbox, *steps: Step, student: str = "ada", attempt: str = "1"):
    program = tuple(step.source for step in steps if isinstance(step, RunCode))
    return grade_job(sandbox, Job("99_test", student, attempt, steps, program, (), b"key"))


def outcome(sandbox: Sandbox, *steps: Step) -> str:
    return graded(sandbox, *steps).exercises["99-double"].outcome


def count_cpu(sandbox: Sandbox, monkeypatch) -> list[float]:
    """A list that the CPU time of every job is put into from now on, in seconds."""
    counted, kill_job = [], sandbox.kill_job

    def counting() -> JobEnded:
        ended = kill_job()
        counted.append(ended.cpu_s)
        return ended

    monkeypatch.setattr(sandbox, "kill_job", counting)
    return counted


def what_cells_print(sandbox: Sandbox, source: str) -> str:
    return run_steps(sandbox, [code("a", source)], {}).cells["a"].printed.strip()


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


def test_hidden_cases_differ_by_student_and_attempt_and_repeat(sandbox) -> None:
    seen = """
def double(x):
    if len(x) > 100:
        raise ValueError(len(x))
    return x * 2
"""

    def hidden_size(**who: str) -> str:
        found = graded(sandbox, code("99-double", seen), DOUBLE, **who).exercises["99-double"]
        return dict(found.hidden.rows)["problem"]

    first = hidden_size()
    assert hidden_size() == first
    assert len({first, hidden_size(student="grace"), hidden_size(attempt="2")}) == 3


@pytest.mark.slow
def test_expectations_and_secrets_are_not_there(sandbox) -> None:
    source = """
import importlib.util, os, sys
for name in ("labkit.oracles", "grading.hidden", "grading.supervisor", "grading.rebuild", "solutions", "tests"):
    try:
        print(name, importlib.util.find_spec(name) is not None)
    except ModuleNotFoundError:
        print(name, False)
secret = ("oracles", "grading.hidden", "supervisor")
print("modules", [name for name in sys.modules if any(part in name for part in secret)])
print("environment", sorted(name for name in os.environ if "GRAD" in name or "KEY" in name or "TOKEN" in name))
"""
    os.environ["A_SECRET_TOKEN"] = "x"
    try:
        with Sandbox() as fresh:
            printed = what_cells_print(fresh, source)
    finally:
        del os.environ["A_SECRET_TOKEN"]
    assert "True" not in printed
    assert "modules []" in printed and "environment []" in printed


def test_the_forking_process_leaves_the_gpu_to_its_jobs(sandbox) -> None:
    printed = what_cells_print(sandbox, "import os\nprint(dict(os.environ))")
    assert FORKED_FROM.items() <= ast.literal_eval(printed).items()


def test_check_in_a_students_cell_does_nothing_there(sandbox) -> None:
    source = "from labkit import check\ndef rms(x, dim): return 0\ncheck('00-warm-up', rms)"
    assert what_cells_print(sandbox, source) == "00-warm-up: checked by the grader"


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
    fed_nothing = run_steps(sandbox, steps[:3], {}, CellLimits(one_s=1.0))
    assert not fed_nothing.cells["bad"].ok and fed_nothing.cells["bad"].error
    assert fed_nothing.cells["99-double"].ok
    if "while" not in source:
        assert outcome(sandbox, *steps) == "passed"


def test_cells_that_hang_again_and_again_come_to_an_end(sandbox) -> None:
    steps = [code(f"c{n}", "while True: pass") for n in range(20)]
    transcript = run_steps(sandbox, steps, {}, CellLimits(one_s=0.3, submission_s=1.0))
    assert len(transcript.cells) == 20
    assert "used more than 1 s" in transcript.cells["c19"].error


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


def test_an_exercise_cannot_spoil_the_next(sandbox) -> None:
    source = "import torch\ndef double(x):\n    global slow\n    slow = torch.add = None\n    return x * 2"
    steps = [code("99-slow", "def slow(x): return x"), code("99-double", source), DOUBLE, exercise("99-slow")]
    result = graded(sandbox, *steps)
    assert [item.outcome for item in result.exercises.values()] == ["passed", "passed"]


def test_a_check_sees_the_notebook_as_it_was_at_that_point(sandbox) -> None:
    steps = [code("99-double", GOOD), DOUBLE, code("later", "def double(x): return None")]
    assert outcome(sandbox, *steps) == "passed"


@pytest.mark.slow
def test_what_was_observed_counts_however_slowly_its_process_ends(sandbox) -> None:
    linger = "import os, time\nleave, here = os._exit, os.getpid()\n"
    linger += "def late(code):\n    time.sleep(2 * (os.getpid() != here))\n    leave(code)\nos._exit = late"
    steps = [code("a", linger), code("99-double", GOOD), DOUBLE, code("99-slow", "def slow(x): return x")]
    result = graded(sandbox, *steps, exercise("99-slow"))
    assert [item.outcome for item in result.exercises.values()] == ["passed", "passed"]
    wrong = graded(sandbox, code("a", linger), code("99-double", "def double(x): return x"), DOUBLE)
    assert wrong.exercises["99-double"].outcome == "failed"


def test_nothing_is_left_running(sandbox) -> None:
    source = """
import os, subprocess, sys
subprocess.Popen(["sleep", "1000.25"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "1000.25"])
    os._exit(0)
"""
    assert outcome(sandbox, code("a", source), code("99-double", GOOD), DOUBLE) == "passed"
    deadline = time.monotonic() + 30
    while _running("1000.25") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _running("1000.25")


def test_a_lying_worker_gains_nothing(sandbox) -> None:
    """The channel is within the student's reach; whatever is said on it is no verdict."""
    forged = """
import gc, socket
from grading.worker.wire.frames import Channel
def double(x):
    for found in gc.get_objects():
        if type(found) is Channel:
            found.send("observed", {reply})
            found.send("exercise over", {{"how": "exit code 0"}})
            found.send("end")
    return x
"""
    replies = [
        '{"got": {"out": True}, "back": {}, "measured": {}, "trouble": None}',
        '{"passed": True, "score": 1e9}',
        '{"got": None, "back": None, "measured": {"peak_bytes": float("nan")}, "trouble": None}',
        '{"got": {"out": [1] * 10}, "back": 3, "measured": 3, "trouble": 3}',
    ]
    for reply in replies:
        result = graded(sandbox, code("99-double", forged.format(reply=reply)), DOUBLE)
        assert result.exercises["99-double"].score == 0, reply


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


RING = """
import torch
def all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    parts = [part.clone() for part in x.tensor_split(n)]
    for step in range(2 * n - 2):
        adds = step < n - 1
        mine = parts[(rank - step - 1) % n]
        got = torch.empty_like(mine)
        work = comm.isend(parts[(rank - step) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        mine.copy_(mine + got if adds else got)
    return torch.cat(parts)
"""
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


@pytest.mark.slow
def test_a_dead_forking_process_is_our_fault_and_no_zero() -> None:
    with Sandbox(preload=()) as server:
        os.kill(server._process.pid, 9)
        with pytest.raises(InfrastructureFault):
            run_steps(server, [code("a", "x = 1")], {})


@pytest.mark.slow
def test_a_worker_that_never_begins_is_our_fault_and_no_zero(lab99, monkeypatch) -> None:
    with Sandbox(preload=()) as server:
        # The worker's first step is to enter its folder.
        monkeypatch.setattr("grading.isolation.sandbox.tempfile.mkdtemp", lambda **where: "/dev/null/not/there")
        with pytest.raises(InfrastructureFault, match=r"ended before it ran anything: NotADirectoryError"):
            run_steps(server, [code("a", "x = 1")], {})


def test_the_forking_process_leaves_nothing_on_the_disk(monkeypatch, tmp_path) -> None:
    """What it has on the disk while it lives is beside the worker's files, which go with the program."""
    tree = shared_worker_tree()
    before = set(tree.parent.iterdir())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Sandbox(tree=tree, preload=()):
        assert set(tree.parent.iterdir()) > before
    assert set(tree.parent.iterdir()) == before and not list(tmp_path.iterdir())


def _running(argument: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False
