"""Budgets are measured by what a student's process cannot forge: real lies, told by real jobs."""

from __future__ import annotations

import random
import re
import socket
import time
from typing import get_args

import pytest
import torch

from grading.demo.examples import example
from grading.hidden import hidden_of
from grading.supervisor.result import SubmissionResult
from grading.supervisor.witness import (
    HALTED_SLACK_BYTES,
    PROBE_SIZES,
    SLACK_BYTES,
    Reading,
    objection,
    probe_readings,
    probes_for,
)
from grading.worker.exercise import _measured
from grading.worker.probes import PROBES
from grading.worker.wire.frames import Channel
from labkit import exercises
from labkit.measures import MEASURES, Witness
from labkit.meters import METERS
from labkit.meters.compiled import compiled_figures
from labkit.meters.full_size import full_size_figures
from labkit.meters.launch_log.meter import BY_TORCH
from labkit.meters.traffic import TrafficProfile, figures_of
from labkit.oracles import oracle_of
from labkit.ranks.traffic import Traffic, figures
from labkit.spec import MiB
from tests.grading.steps import code, count_cpu, exercise, graded

BLOCKED = "02-blocked-sum"
MERGE = "02-merge-smallest"
RIGHT = example("right", f"{BLOCKED}/float64_accumulator").source
MERGED = example("right", f"{MERGE}/two_queues").source

# Holds all of x in float32 at once, in memory that the meter was given and so does not count.
WHOLE = """
import torch
def whole_sum(x, dim, block_size, room):
    copy = room[: x.numel()].view(x.shape)
    copy.copy_(x)
    total = 0
    for block in copy.split(block_size, dim):
        total = total + block.sum(dim)
    return total
"""
# Holds a copy of all of x in pages that are no data, because they are not writable any more, where a library was.
BEHIND = """
import ctypes, mmap, torch
with open(torch.__path__[0] + "/lib/libtorch_cpu.so", "rb") as file:
    window = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
sum(window[::4096])
libc, kept, part = ctypes.CDLL(None), [], 2**20
def keep(n_bytes):
    window.close()
    for _ in range(0, n_bytes, part):
        kept.append(mmap.mmap(-1, part, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        address = ctypes.addressof(ctypes.c_char.from_buffer(kept[-1]))
        ctypes.memset(address, 1, part)
        libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(part), 1)
"""
FROM_ARENA = "def blocked_sum(x, dim, block_size):\n    return whole_sum(x, dim, block_size, ARENA)"

AWAITS = """
import asyncio, torch
async def one():
    await asyncio.sleep(0.01)
    return 1
print(await one(), await asyncio.gather(one(), one()))
"""
# What a signal wakes it by is the loop's own pair.
LOOPS = """
import asyncio, signal
async def two():
    loop = asyncio.get_running_loop()
    woken = loop.create_future()
    loop.add_signal_handler(signal.SIGUSR1, woken.set_result, 2)
    signal.raise_signal(signal.SIGUSR1)
    return await woken
loop = asyncio.new_event_loop()
assert loop.run_until_complete(two()) == 2
loop.close()
"""


def course_exercises() -> list[str]:
    return [name for name in exercises.everything() if not name.startswith("99")]


def test_every_measure_is_borne_out_by_the_witness_that_it_names() -> None:
    named = {witness: {m.name for m in MEASURES.values() if m.witness == witness} for witness in get_args(Witness)}
    assert set().union(*named.values()) == set(MEASURES)
    # What is kept is part of the peak, which is what is read.
    assert named["outside"] == {Reading("peak_bytes", 0, 0).name, "saved_bytes", "held_bytes"}
    assert named["probe"] == {reading.name for meter in PROBE_SIZES for reading in probe_readings(meter, 1, {})}
    assert named["router"] == set(figures(Traffic((0,), (0,), 0, {}, {})))
    assert named["replay"] == {*figures_of(TrafficProfile()), BY_TORCH, *compiled_figures([]), *full_size_figures([])}


@pytest.mark.parametrize("name", course_exercises())
def test_every_budget_of_the_course_has_a_witness(name: str) -> None:
    budgets = {budget.key: budget for budget in oracle_of(name).budgets}
    for budget in budgets.values():
        assert MEASURES[budget.name].witness != "inside"
        if MEASURES[budget.name].witness == "outside":
            cases = hidden_of(name).memory_cases(random.Random(0))
            assert cases, f"{name}: hidden cases on which {budget.name} can be seen from outside"
            assert "peak_bytes" in budgets, f"{name}: what is seen from outside is a peak"
            assert not budget.at or exercises.find(name).run.ranks != 1, f"{name}: only ranks halt at a moment"
    if exercises.find(name).run.cpu_s is not None:
        assert exercises.find(name).run.wall_s > exercises.find(name).run.cpu_s


@pytest.mark.parametrize(
    "reading, text",
    [
        (Reading("peak_bytes", 1.0, 5.0 * MiB, limit=1.0 * MiB), None),
        (
            Reading("peak_bytes", 1.0 * MiB, 90.0 * MiB, limit=2.0 * MiB),
            "the meter said 1.0 MiB, but .* grew by 90.0 MiB; 2.0",
        ),
        # What breaks its budget by its own word is judged by it.
        (Reading("peak_bytes", 80.0 * MiB, 90.0 * MiB, limit=2.0 * MiB), None),
        (Reading("peak_bytes", 0.0, 2.0 * SLACK_BYTES, limit=0.0), None),
        (Reading("held_bytes, freed", 0.0, 5.0 * MiB, limit=1.0 * MiB, slack=HALTED_SLACK_BYTES), None),
        (
            Reading("held_bytes, freed", 0.0, 5.1 * MiB, limit=1.0 * MiB, slack=HALTED_SLACK_BYTES),
            "freed: the meter said 0.0 MiB, but .* grew by 5.1 MiB; 1.0",
        ),
        (Reading("ops", 7.0, 7.0, exact=True), None),
        (Reading("ops", 6.0, 7.0, exact=True), "the meter of ops counted 6 where there were 7"),
    ],
)
def test_what_is_objected_to(reading: Reading, text: str | None) -> None:
    found = objection(reading)
    if text is None:
        assert found is None
    else:
        assert found is not None and re.search(text, found)


def test_a_probe_is_compared_figure_by_figure() -> None:
    honest = probe_readings("ops", 30, {"dispatches": 31.0, "flops": 60.0})
    assert [objection(reading) for reading in honest] == [None, None]
    lying = probe_readings("ops", 30, {"dispatches": 31.0, "flops": 59.0})
    assert [objection(reading) for reading in lying] == [None, "the meter of flops counted 59 where there were 60"]


def test_probes_have_secret_sizes_small_and_large() -> None:
    drawn = [probes_for(oracle_of(BLOCKED).budgets, random.Random(seed)) for seed in range(20)]
    assert {meter for probes in drawn for meter, _ in probes} == {"ops"}
    assert all(small <= 60 < 1000 <= large for (_, small), (_, large) in drawn)
    assert len({probes for probes in drawn}) == 20


@pytest.mark.slow
def test_probes_are_counted_in_the_settings_of_the_cases() -> None:
    """Not in those that an honest notebook left."""
    plain = _measured("generated", 24)
    torch.set_default_dtype(torch.float64)
    try:
        assert _measured("generated", 24) == plain and plain["kernel_bytes"] > 0
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("meter", PROBE_SIZES)
def test_an_honest_meter_counts_what_is_in_its_probe(meter: str) -> None:
    rng = random.Random(0)
    for n in [rng.randint(*sizes) for sizes in PROBE_SIZES[meter] for _ in range(4)]:
        claimed: dict[str, float] = {}
        work = PROBES[meter](n)
        with METERS[meter](claimed, {}):
            work()
        assert [objection(reading) for reading in probe_readings(meter, n, claimed)] == [None] * len(claimed)


# --- real jobs


def sum_of(sandbox, *cells: str, answer: str = RIGHT) -> SubmissionResult:
    before = [code(f"c{n}", source) for n, source in enumerate(cells)]
    return graded(sandbox, *before, code(BLOCKED, answer), exercise(BLOCKED))


@pytest.mark.slow
def test_an_honest_answer_passes(sandbox) -> None:
    result = sum_of(sandbox, "import torch")
    assert (result.exercises[BLOCKED].outcome, result.notes) == ("passed", ())


@pytest.mark.slow
def test_an_honest_answer_may_ask_for_threads(sandbox) -> None:
    """It gets none: their stacks are memory, and a job whose memory or CPU time is held may start no thread."""
    ask = "import torch\ntorch.set_num_threads(4)"
    work = f"{ask}\ntorch.ones(1000, 1000) @ torch.ones(1000, 1000)"
    for cell, answer in ((work, RIGHT), ("import torch", f"{ask}\n{RIGHT}")):
        result = sum_of(sandbox, cell, answer=answer)
        assert (result.exercises[BLOCKED].outcome, result.notes) == ("passed", ())
    asking = MERGED.replace("    while len", "    import torch\n    torch.set_num_threads(4)\n    while len", 1)
    assert asking != MERGED
    result = graded(sandbox, code("a", work), code(MERGE, asking), exercise(MERGE))
    assert (result.exercises[MERGE].outcome, result.notes) == ("passed", ())


@pytest.mark.slow
def test_an_honest_notebook_may_wait(sandbox) -> None:
    """An event loop makes a pair of sockets for itself, which a job whose memory is watched must not."""
    for cells, answer in (((AWAITS,), RIGHT), ((), f"import torch\n{LOOPS}\n{RIGHT}")):
        result = sum_of(sandbox, *cells, answer=answer)
        assert all(cell.ok for cell in result.cells.values()), result.cells
        assert (result.exercises[BLOCKED].outcome, result.notes) == ("passed", ())


@pytest.mark.slow
def test_large_things_in_other_cells_are_no_reason_for_doubt(sandbox, monkeypatch) -> None:
    """Nor for a person's look: a third of the honest notebooks on models keep one."""
    counted = count_cpu(sandbox, monkeypatch)
    result = sum_of(sandbox, "import torch", "experiment = torch.ones(50 * 2**20)")
    assert (result.exercises[BLOCKED].outcome, result.notes) == ("passed", ())
    # The last job is that of the second look.
    assert counted[-1] and result.usage["cpu_s"] == pytest.approx(sum(counted), abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell, answer, why",
    [
        ("ARENA = torch.ones(34 * 2**20)", FROM_ARENA, "already held 1[34]. MiB"),
        (
            "import mmap\nARENA = torch.frombuffer(mmap.mmap(-1, 136 * 2**20, flags=mmap.MAP_PRIVATE "
            "| mmap.MAP_ANONYMOUS | 0x100), dtype=torch.float32)\nARENA.fill_(1)",
            FROM_ARENA,
            "already held 1[34]. MiB",
        ),
        (
            "import subprocess\nhelper = subprocess.Popen(['sleep', '60'])",
            RIGHT + "\n_keep = helper",
            None,
        ),
        (
            "import os\nif not os.fork():\n    import time; time.sleep(60)\nleft = 1",
            RIGHT.replace("    start = 0\n", "    start = left - 1\n"),
            "1 more processes were running",
        ),
        (
            "import mmap\ndef room(n): return torch.frombuffer(mmap.mmap(-1, max(4 * n, 4096), flags=mmap.MAP_PRIVATE "
            "| mmap.MAP_ANONYMOUS), dtype=torch.float32)",
            "def blocked_sum(x, dim, block_size):\n    return whole_sum(x, dim, block_size, room(x.numel()))",
            "held from outside to",
        ),
        (
            BEHIND,
            RIGHT.replace("    total =", "    if x.numel() > 2**24: keep(4 * x.numel())\n    total =", 1),
            "but from outside the process grew by",
        ),
        (
            "from labkit.meters import METERS\nimport contextlib\nhonest = METERS['ops']\n@contextlib.contextmanager\n"
            "def less(measured, held):\n    with honest(measured, held): yield\n    measured['dispatches'] *= 0.9\n"
            "METERS['ops'] = less",
            RIGHT + "\n_kept = less",
            "the meter of dispatches counted",
        ),
    ],
    ids=["arena", "stack arena", "unneeded helper", "helper", "own mapping", "behind a file", "meter"],
)
def test_a_lie_gets_no_points_and_a_persons_look(sandbox, cell: str, answer: str, why: str | None) -> None:
    if not sandbox.tier.isolates:
        pytest.skip("a job that is not confined is not bounded either")
    result = sum_of(sandbox, WHOLE, cell, answer=answer)
    found = result.exercises[BLOCKED]
    assert found.public.outcome == "passed"
    if why is None:
        # A process that the answer does not need is left out at the second look.
        assert found.outcome in ("passed", "suspected")
        return
    assert (found.outcome, found.score) == ("suspected", 0.0)
    assert re.search(why, " ".join(result.notes))


@pytest.mark.full("attacks")
def test_cpu_time_that_was_used_before_buys_none(sandbox) -> None:
    burn = "import os, time\nif not os.fork():\n    while time.process_time() < 3: pass\n    os._exit(0)\nos.wait()"
    busy = "    import time\n    until = time.process_time() + 7\n    signal.setitimer(signal.ITIMER_PROF, 0)\n"
    busy += "    while len(values) > 1000 and time.process_time() < until: pass\n"
    slow = MERGED.replace("    while len", f"{busy}    while len", 1)
    steps = (code("a", f"import signal\n{burn}"), code(MERGE, slow), exercise(MERGE))
    found = graded(sandbox, *steps).exercises[MERGE]
    assert found.score == 0
    assert found.outcome in ("limit", "suspected")


def test_an_answer_that_came_in_time_is_read_late() -> None:
    """The supervisor's machine may stand still; that is not the student's time."""
    ours, theirs = socket.socketpair()
    Channel(theirs).send("observed", {"got": 1})
    assert Channel(ours).receive(deadline=time.monotonic() - 5) == ("observed", {"got": 1})
    with pytest.raises(TimeoutError):
        Channel(ours).receive(deadline=time.monotonic() - 5)
