"""The memory and CPU time of every rank are held and read from outside: one that takes more in secret is caught."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from grading.supervisor import Sandbox
from grading.supervisor.result import ExerciseResult
from labkit.check.text import as_text
from labkit.spec import MiB
from tests.grading.ranks import graded, ranks_server
from tests.grading.routed_answers import BLIND_METER
from tests.grading.test_unprivileged import ROOT, as_user
from tests.lanes import MOSTLY_LATER, require_tier

pytestmark = pytest.mark.slow

HONEST = """
def largest(comm, x):
    most = torch.stack([block.max() for block in x.split(4096)]).max()
    comm.all_reduce(most, "max")
    return most
"""
BIG_MESSAGES = """
def largest(comm, x):
    n = len(x) // 16
    most = x[:n].clone()
    for block in x.split(n):
        torch.maximum(most[: len(block)], block, out=most[: len(block)])
    comm.all_reduce(most, "max")
    return most.max()
"""
# In memory that no meter knows of, and on one rank only, so that the others do not show it.
STASH = """
import mmap
import torch

def room(n):
    return torch.frombuffer(mmap.mmap(-1, 4 * n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype=torch.float32)

def stash(comm, x):
    if comm.rank == comm.world_size - 1 and len(x) > 10_000:
        room(len(x) * 3 // 4).copy_(x[: len(x) * 3 // 4])
"""


@pytest.fixture(scope="module", params=MOSTLY_LATER)
def server(request):
    with ranks_server(require_tier(request.param)) as found:
        yield found


def result_of(server: Sandbox, *cells: str) -> ExerciseResult:
    return graded(server, "import torch", *cells, name="98-room").exercises["98-room"]


def with_line(line: str) -> str:
    """The honest answer, with one line before its first."""
    return HONEST.replace("    most", f"    {line}\n    most", 1)


@pytest.mark.parametrize("answer", [HONEST, BIG_MESSAGES], ids=["small messages", "big messages"])
def test_an_honest_answer_passes(server, answer: str) -> None:
    found = result_of(server, answer)
    assert found.outcome == "passed", as_text(found.deciding)


@pytest.mark.parametrize(
    ("cell", "answer", "why"),
    [
        (STASH, with_line("stash(comm, x)"), "held from outside to 8.0 MiB and some, it did not go through: rank 2"),
        (BLIND_METER, with_line("y = x.clone() if blind else x"), "held from outside to|but from outside"),
        (STASH + "ARENA = room(10 * 2**20).fill_(1)", with_line("ARENA[0] = 2"), "rank 0: the notebook already held 4"),
        (
            "import os\nif not os.fork():\n    import time; time.sleep(60)\nleft = 1",
            with_line("most = left"),
            "1 more processes were running",
        ),
    ],
    ids=["stash", "meter", "arena", "helper"],
)
def test_what_one_rank_takes_in_secret_gets_no_points(server, cell: str, answer: str, why: str) -> None:
    found = result_of(server, cell, answer)
    assert found.public.outcome == "passed", as_text(found.public)
    assert (found.outcome, found.score) == ("suspected", 0.0), as_text(found.deciding)
    problem = " ".join(text for _, text in found.deciding.rows)
    assert re.search(why, problem), problem


def test_what_the_kernel_lets_pass_is_seen(server, monkeypatch: pytest.MonkeyPatch) -> None:
    """With so much room for messages that it refuses nothing: only what they took is put down to them."""
    monkeypatch.setattr("grading.supervisor.ranks.run.FRAMES_BYTES", 64 * MiB)
    found = result_of(server, STASH, with_line("stash(comm, x)"))
    assert (found.outcome, found.score) == ("suspected", 0.0), as_text(found.deciding)
    (problem,) = (text for _, text in found.deciding.rows)
    wanted = r"the meter said 2\.\d MiB, but from outside the process grew by 4\d\.\d MiB; 8.0 MiB are allowed"
    assert re.fullmatch(wanted, problem), problem


@pytest.mark.full("attacks")
def test_cpu_time_of_one_rank_is_limited_from_outside(server) -> None:
    """It has switched off what would have told it so from inside."""
    busy = """import signal, time
    signal.setitimer(signal.ITIMER_PROF, 0)
    while comm.rank and len(x) > 4096:
        pass"""
    found = result_of(server, with_line(busy))
    assert found.public.outcome == "passed" and found.score == 0
    assert dict(found.hidden.rows)["problem"] == "the process of rank 1 ended"


WITHOUT_ROOT = """
import json
from grading.isolation.tiers import ISOLATING
from tests.grading import test_ranked_memory as here

told = {}
for tier in ISOLATING:
    with here.ranks_server(tier) as server:
        honest = here.result_of(server, here.HONEST)
        stash = here.result_of(server, here.STASH, here.with_line("stash(comm, x)"))
    told[tier.name] = [honest.outcome, stash.outcome, " ".join(text for _, text in stash.deciding.rows)]
print(json.dumps(told))
"""


@pytest.mark.full("attacks")
def test_without_root_it_is_the_same(tmp_path) -> None:
    require_tier("bwrap")
    command = [sys.executable, "-c", WITHOUT_ROOT]
    if os.geteuid() == 0:
        command = as_user(command, tmp_path)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-2000:]
    for tier, (honest, stash, problem) in json.loads(done.stdout.splitlines()[-1]).items():
        assert (honest, stash) == ("passed", "suspected"), (tier, problem)
        assert "held from outside to 8.0 MiB and some" in problem
