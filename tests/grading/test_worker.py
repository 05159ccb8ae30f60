"""What student code can do to the worker costs the student alone, and only what it touched."""

from __future__ import annotations

import ast
import itertools
import os
import time
from pathlib import Path

import pytest

from grading.isolation.faults import InfrastructureFault
from grading.isolation.forking import START_CPU_S, ForkingProcess
from grading.isolation.tiers import tier_named
from grading.isolation.worker_tree import shared_worker_tree
from grading.supervisor import Sandbox
from grading.supervisor.attempts import run_steps
from labkit.forking import FORKED_FROM
from tests.grading.shared_sandboxes import shared_sandbox
from tests.grading.steps import DOUBLE, GOOD, code, exercise, graded, outcome, what_cells_print
from tests.lanes import EVERY_TIER, require_tier

pytestmark = pytest.mark.usefixtures("lab99")


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


@pytest.mark.slow
def test_a_dead_forking_process_is_our_fault_and_no_zero() -> None:
    with Sandbox(preload=()) as server:
        os.kill(server.forking.pid, 9)
        with pytest.raises(InfrastructureFault):
            run_steps(server, [code("a", "x = 1")], {})


@pytest.mark.slow
def test_a_forking_process_has_the_time_that_it_needs_as_long_as_it_computes(monkeypatch) -> None:
    """On a crowded machine one that loads PyTorch and a compiler stands in line for minutes."""
    monkeypatch.setattr("grading.isolation.forking.IDLE_S", 1e-3)
    with monkeypatch.context() as crowded:
        used_s = itertools.count(1e-3, 1e-3)
        crowded.setattr(ForkingProcess, "cpu_s", lambda self: next(used_s))
        with Sandbox(preload=()) as server:
            assert what_cells_print(server, "print(1)") == "1"
        assert next(used_s) > 3e-3
    for hangs_or_loops_s in (0.0, START_CPU_S):
        with monkeypatch.context() as stuck, pytest.raises(InfrastructureFault, match='did not say "ready"'):
            stuck.setattr(ForkingProcess, "cpu_s", lambda self, used_s=hangs_or_loops_s: used_s)
            Sandbox(preload=())


@pytest.mark.parametrize("tier", EVERY_TIER)
def test_what_the_forking_process_computes_is_counted(tier: str) -> None:
    require_tier(tier)
    assert shared_sandbox(tier_named(tier)).forking.cpu_s() > 0.1


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
