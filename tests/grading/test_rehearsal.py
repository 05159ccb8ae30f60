"""What spares the jobs time, and that they cannot tell: a rehearsal, large pages, memory that is kept, small frames."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from grading.isolation.plan import COMPILER, FULL, KERNELS, LIGHT
from grading.isolation.probe import try_tier
from grading.isolation.tiers import KERNEL
from grading.supervisor import Sandbox
from grading.supervisor.attempts import run_steps
from grading.worker.wire.frames import Channel
from tests.grading.shared_sandboxes import shared_sandbox
from tests.grading.steps import DOUBLE, GOOD, PATIENT, code, graded, what_cells_print

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("lab99")]


@pytest.fixture(scope="module")
def light(sandbox):
    """A forking process with what most labs' have loaded, which is the least; `sandbox` has more."""
    with Sandbox(sandbox.tier, sandbox.tree, preload=LIGHT) as server:
        yield server


def test_an_answer_finds_everything_loaded(light) -> None:
    source = """
import sys
before = set(sys.modules)
def double(x):
    # A rehearsal loads what the course has; lab 99 is not in it.
    late = {name for name in set(sys.modules) - before if "lab99" not in name}
    return x * 2 if not late else sorted(late)
"""
    found = graded(light, code("99-double", source), DOUBLE).exercises["99-double"]
    assert found.outcome == "passed", found.deciding.rows


def test_a_cell_finds_everything_loaded(light) -> None:
    first = code("a", "import sys\nbefore = set(sys.modules)")
    source = "import jaxtyping, torch, matplotlib.pyplot\n%matplotlib inline\nprint(set(sys.modules) - before)"
    cells = run_steps(light, [first, code("b", source)], {}, PATIENT).cells
    assert cells["b"].ok and cells["b"].printed.strip() == "set()", cells["b"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "more",
    [pytest.param((), id="alone"), pytest.param(KERNELS, marks=pytest.mark.full("determinism"), id="beside kernels")],
)
def test_a_first_graph_finds_everything_loaded(sandbox, more: tuple[str, ...]) -> None:
    """Also the first that inductor sees, forward and backward."""
    if more:
        pytest.importorskip("triton")
    source = """
import os, sys
before = set(sys.modules)
import torch
from labkit import track_compile
with track_compile() as compiled:
    x = torch.ones(4, 4, requires_grad=True)
    torch.compile(lambda x: torch.nn.functional.gelu(x * 2).softmax(-1))(x).sum().backward()
print(len(compiled.codes), set(sys.modules) - before, len(os.listdir("/proc/self/task")))
"""
    with Sandbox(sandbox.tier, sandbox.tree, preload=(*FULL, *COMPILER, *more)) as server:
        assert what_cells_print(server, source) == "2 set() 1"


def test_a_job_begins_with_a_shell_in_which_nothing_has_run(sandbox) -> None:
    source = """
import os, sys, torch, matplotlib
ip, here = get_ipython(), os.getcwd()
print(sorted(name for name in globals() if not name.startswith("_")))
print(ip.execution_count, len(In), Out, [str(path) == here for path in _dh], ip.home_dir == here)
print(sys.modules["__main__"].__dict__ is globals(), "" in sys.path, torch.is_grad_enabled(), matplotlib.get_backend())
mine = 1
"""
    names = "['In', 'Out', 'exit', 'get_ipython', 'here', 'ip', 'matplotlib', 'open', 'os', 'quit', 'sys', 'torch']"
    for _ in range(2):
        lines = what_cells_print(sandbox, source).splitlines()
        assert lines[0] == names
        assert lines[1] == "1 1 {} [True] True"
        assert lines[2].lower() == "true false true agg"


def test_generators_begin_the_same_in_every_forking_process(light, sandbox) -> None:
    source = "import numpy, torch\nprint(numpy.random.rand(3), torch.rand(3))"
    printed = [what_cells_print(one, source) for one in (light, sandbox, light, sandbox)]
    assert len(set(printed)) == 1 and printed[0]


def test_blocks_of_a_usual_size_are_not_fetched_from_the_system_each_time(sandbox) -> None:
    source = """
import resource, torch
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
# What is free already is taken first.
filled = [torch.ones(64 * 1024) for _ in range(128)]
def blocks():
    return [torch.ones(64 * 1024) for _ in range(4)]
blocks()
before = faults()
for _ in range(100):
    blocks()
print(faults() - before)
"""
    assert int(what_cells_print(sandbox, source)) < 1000


def test_inputs_go_back_only_where_they_were_changed(sandbox, monkeypatch) -> None:
    told = []
    receive = Channel.receive

    def noted(self, deadline=None):
        kind, parts = receive(self, deadline)
        told.extend([parts] if kind == "observed" else [])
        return kind, parts

    monkeypatch.setattr(Channel, "receive", noted)
    assert graded(sandbox, code("99-double", GOOD), DOUBLE).exercises["99-double"].outcome == "passed"
    assert len(told) == 4 and not any("back" in parts for parts in told)
    told.clear()
    changes = "def double(x):\n    y = x * 2\n    x.zero_()\n    return y"
    assert graded(sandbox, code("99-double", changes), DOUBLE).exercises["99-double"].outcome == "failed"
    assert told and all("back" in parts for parts in told)


def can_gather() -> bool:
    """Asked by the test alone: to try a tier starts one, which takes seconds in every process that collects tests."""
    release = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
    return release >= (6, 1) and Path("/sys/kernel/mm/transparent_hugepage").exists() and try_tier(KERNEL).works


def test_large_pages_are_what_was_loaded_and_nothing_of_a_job_s_own(lab99) -> None:
    if not can_gather():
        pytest.skip("needs Linux 6.1 with large pages, and the kernel tier")
    source = """
import torch
x = torch.ones(32 * 2**20)
huge = dict(line.split(":") for line in open("/proc/self/status") if ":" in line)["THP_enabled"].strip()
print(huge)
"""
    shared = shared_sandbox(KERNEL)
    rollup = Path(f"/proc/{shared.forking.pid}/smaps_rollup").read_text()
    large_kib = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("AnonHugePages"))
    assert large_kib > 32 * 1024
    assert what_cells_print(shared, source) == "0"
