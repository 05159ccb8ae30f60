"""No value passes between ranks beside the router; what is tried instead costs the one who tries it.

Each cheat sends zeros of the right size, which the books cannot object to, and the values in another way. The control
is the simulator, or a worker without isolation: where ranks share a process or a machine, the same cheat goes through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from grading.isolation.tiers import KERNEL, NONE
from grading.supervisor import Sandbox
from grading.supervisor.apart import ONLY_TOGETHER
from grading.worker.confine.plan import PLAIN
from labkit.check.judge import judge
from labkit.observe import make_inputs, observe
from labkit.spec import GiB
from tests.grading.hostile_ranks import FORGED, LOOKS, WITHOUT_A_BYTE
from tests.grading.lab98 import oracles
from tests.grading.lab98.exercises import SUM, Ranks
from tests.grading.ranks import graded, ranks_server
from tests.grading.side_channels import HONEST, IN_ONE_PROCESS, MADE_BY_A_CELL, ON_ONE_MACHINE, ZEROS
from tests.lanes import EVERY_TIER, require_tier

pytestmark = pytest.mark.slow

UNTIL_A_LIMIT = ("a flood of bytes", "no end")
"""What goes on for ten seconds, until a limit is reached: every day the others, which say the same, are enough."""


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with ranks_server(require_tier("kernel")) as found:
        yield found


@pytest.fixture(scope="module")
def no_isolation() -> Iterator[Sandbox]:
    with ranks_server(NONE) as found:
        yield found


def outcome(server: Sandbox, answer: str, *cells: str) -> str:
    return graded(server, "import torch", *cells, answer).exercises["98-sum"].outcome


def passes_simulated(source: str, case: Ranks) -> bool:
    namespace: dict = {}
    exec("import torch\n" + source, namespace)
    run = observe(SUM, SimpleNamespace(total=namespace["total"]), case, make_inputs(SUM, case, 1))
    return judge(SUM, oracles.SUM, [run]).score == 1


def test_an_honest_answer_passes(server) -> None:
    result = graded(server, HONEST)
    assert result.exercises["98-sum"].hidden.outcome == "passed" and result.usage["cpu_s"] > 0


@pytest.mark.parametrize("name", IN_ONE_PROCESS)
def test_what_ranks_of_one_process_share(server, name: str) -> None:
    cheat = IN_ONE_PROCESS[name] + ZEROS
    found = graded(server, "import torch", cheat).exercises["98-sum"].public
    assert found.outcome == "failed"
    if name not in ("the caller's frame", "the garbage collector"):
        assert passes_simulated(cheat, Ranks(3))
        assert found.hint == ONLY_TOGETHER


@pytest.mark.parametrize("name", ON_ONE_MACHINE)
def test_what_ranks_on_one_machine_share(server, no_isolation, name: str) -> None:
    assert outcome(server, ON_ONE_MACHINE[name] + ZEROS) == "failed"
    assert outcome(no_isolation, ON_ONE_MACHINE[name] + ZEROS) == "passed"


@pytest.mark.parametrize("name", MADE_BY_A_CELL)
def test_what_a_cell_has_opened(server, name: str) -> None:
    assert passes_simulated(MADE_BY_A_CELL[name] + ZEROS, Ranks(3))
    assert outcome(server, MADE_BY_A_CELL[name] + ZEROS) == "failed"
    assert outcome(server, ZEROS, MADE_BY_A_CELL[name]) == "failed"


def test_a_rank_sees_itself_alone(server) -> None:
    rows = dict(graded(server, "import torch", LOOKS).exercises["98-sum"].public.rows)
    assert rows["problem"].startswith("rank 0: wrong value"), rows


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.full("attacks")] if name in UNTIL_A_LIMIT else []) for name in FORGED],
)
def test_what_a_rank_may_say_costs_itself(server, name: str) -> None:
    assert outcome(server, FORGED[name]) in ("failed", "limit")
    # And the next one is graded.
    assert outcome(server, HONEST) == "passed"


@pytest.mark.parametrize("name", WITHOUT_A_BYTE)
def test_what_is_told_without_a_byte(server, name: str) -> None:
    rows = dict(graded(server, WITHOUT_A_BYTE[name]).exercises["98-sum"].public.rows)
    wanted = {"clocks": "over budget: bytes", "shapes": "receives it into float32 of shape (1, 2)"}
    assert wanted[name] in rows["problem"], rows


def test_figures_that_a_rank_claims_are_not_believed(server) -> None:
    """Too much traffic, and a measure that says otherwise."""
    wasteful = HONEST.replace("    total, got", "    comm.all_reduce(x.clone())\n    total, got")
    lie = (
        "from labkit.stage import Stage\nStage.__post_init__ = lambda s: s.measured.update(bytes_total=0.0, rounds=0.0)"
    )
    found = graded(server, lie, wasteful).exercises["98-sum"].public
    assert dict(found.rows)["problem"].startswith("over budget: bytes")


def test_memory_of_all_ranks_counts_together() -> None:
    """Each stays within its own limit, and all of them do not."""
    hog = "def total(comm, x):\n    import time\n    global kept\n    kept = bytearray(450 * 2**20)\n"
    hog += "    for at in range(0, len(kept), 4096): kept[at] = 1\n    time.sleep(2.5)\n    return x"
    with ranks_server(limits=replace(PLAIN, memory_bytes=GiB)) as found:
        rows = dict(graded(found, hog).exercises["98-sum"].public.rows)
    assert rows["problem"].startswith("its processes together used more than"), rows


@pytest.mark.parametrize("tier", [tier for tier in EVERY_TIER if tier.values[0] != KERNEL.name])
def test_ranks_within_one_sandbox(tier: str) -> None:
    with ranks_server(require_tier(tier)) as found:
        assert outcome(found, HONEST) == "passed"
        for cheat in ("files in /tmp", "a helper behind an abstract socket", "a file that all read is locked"):
            assert outcome(found, ON_ONE_MACHINE[cheat] + ZEROS) == "failed"
        rows = dict(graded(found, "import torch", LOOKS).exercises["98-sum"].public.rows)
        assert rows["problem"].startswith("rank 0: wrong value"), rows
