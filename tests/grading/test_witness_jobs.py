"""Real lies, told by real jobs, get no points; what honest notebooks do besides their answers costs none."""

from __future__ import annotations

import re

import pytest

from grading.demo.examples import example
from grading.supervisor.result import SubmissionResult
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
