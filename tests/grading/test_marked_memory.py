"""What ranks hold at named moments is read from outside, while all of them halt: a rank that says less is caught."""

from __future__ import annotations

import re

import pytest

from grading.supervisor import Sandbox
from grading.supervisor.result import ExerciseResult
from labkit.check.text import as_text
from tests.grading.ranks import graded, ranks_server
from tests.lanes import MOSTLY_LATER, require_tier

pytestmark = pytest.mark.slow

HONEST = """
def use(comm, shard):
    whole = torch.empty(comm.world_size * len(shard))
    comm.all_gather_single(whole, shard)
    return whole.sum().item()
"""
KEEPS = """
kept = []

def use(comm, shard):
    kept.clear()
    whole = torch.empty(comm.world_size * len(shard))
    comm.all_gather_single(whole, shard)
    kept.append(whole)
    return whole.sum().item()
"""
# In memory that no meter of tensors knows of, and on one rank only.
STASHES = """
import mmap

kept = []

def use(comm, shard):
    kept.clear()
    whole = torch.empty(comm.world_size * len(shard))
    comm.all_gather_single(whole, shard)
    if comm.rank:
        place = mmap.mmap(-1, whole.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        kept.append(torch.frombuffer(place, dtype=torch.float32))
        for at in range(0, len(whole), 2**16):
            kept[0][at : at + 2**16] = whole[at : at + 2**16]
    return whole.sum().item()
"""
# Its rank's memory is told as that of the shards, which is what a rank may hold.
LIES = """
import labkit.ranks.comm as communicator
from labkit.meters.memory import Held, held_now

def told(shards=[]):
    found = held_now()
    shards.append(found.n_bytes)
    return Held(min(shards), ())

communicator.held_now = told
"""


@pytest.fixture(scope="module", params=MOSTLY_LATER)
def server(request):
    with ranks_server(require_tier(request.param)) as found:
        yield found


def result_of(server: Sandbox, *cells: str) -> ExerciseResult:
    return graded(server, "import torch", *cells, name="98-layers").exercises["98-layers"]


def test_an_honest_answer_passes(server) -> None:
    found = result_of(server, HONEST)
    assert found.outcome == "passed", as_text(found.deciding)


def test_what_is_kept_by_its_own_word_is_over_budget(server) -> None:
    found = result_of(server, KEEPS)
    assert found.outcome == "failed"
    rows = dict(found.public.rows)
    assert rows["problem"] == "over budget: held bytes, between layers", as_text(found.public)
    assert "float32" in rows["held"], as_text(found.public)
    assert found.public.hint == "Free what was gathered."


@pytest.mark.parametrize(("cell", "answer"), [("", STASHES), (LIES, KEEPS)], ids=["stash", "lie"])
def test_what_a_rank_keeps_in_secret_is_seen_from_outside(server, cell: str, answer: str) -> None:
    """It is one layer, so the peak is what it may be: only the moment shows it."""
    found = result_of(server, cell, answer)
    assert found.public.outcome == "passed", as_text(found.public)
    assert (found.outcome, found.score) == ("suspected", 0.0), as_text(found.deciding)
    (problem,) = (text for _, text in found.deciding.rows)
    wanted = r"between layers: the meter said [\d.]+ MiB, but from outside the process grew by 28\.\d MiB; 20\.0 MiB .*"
    assert re.fullmatch(wanted, problem), problem
