"""A routed case is a simulated one, observation by observation, for every honest program and for every mistake."""

from __future__ import annotations

import inspect

import pytest

from labkit.measures import MEASURES, RANKS
from tests.grading.lab98.exercises import Ranks
from tests.grading.ranks import ranks_server
from tests.grading.routed_programs import differences, program, routed, simulated
from tests.ranks import algorithms

ALGORITHMS = inspect.getsource(algorithms)


@pytest.fixture(scope="module")
def server():
    with ranks_server() as found:
        yield found


HONEST = {
    **{name: f"{ALGORITHMS}\ndef program(comm, x):\n    return {name}(comm, x)\n" for name in algorithms.ALL},
    "collectives": f"{ALGORITHMS}\ndef program(comm, x):\n    return everything(comm, 7, torch.float32)\n",
    "of integers": f"{ALGORITHMS}\ndef program(comm, x):\n    return everything(comm, 4, torch.int64)\n",
    "of 16 bits": f"{ALGORITHMS}\ndef program(comm, x):\n    return everything(comm, 4, torch.bfloat16)\n",
    "groups": f"{ALGORITHMS}\ndef program(comm, x):\n    return [] if comm.world_size % 2 else in_groups(comm, 3)\n",
    "nothing at all": program("return x"),
    "empty, scalar and odd tensors": program("""
right, left = (rank + 1) % n, (rank - 1) % n
got = []
for sent in (x[:0], x.sum(), x.reshape(1, -1, 1) > 0, x.to(torch.complex64), x.to(torch.float8_e4m3fn), x[::2]):
    if n > 1:
        into = torch.empty_like(sent)
        work = comm.isend(sent, right)
        comm.recv(into, left)
        work.wait()
        got.append(into.to(torch.float64) if into.dtype is torch.float8_e4m3fn else torch.view_as_real(into)
                   if into.is_complex() else into)
return got
"""),
    "barriers": program("""
seen = []
for step in range(3):
    if rank == step % n and n > 1:
        comm.send(x + step, (rank + 1) % n)
    elif n > 1 and rank == (step + 1) % n:
        into = torch.empty_like(x)
        comm.recv(into, step % n)
        seen.append(into)
    comm.barrier()
return seen
"""),
    "waits in another order": program("""
others = [r for r in range(n) if r != rank]
into = [torch.empty_like(x) for _ in others]
receives = [comm.irecv(t, r) for t, r in zip(into, others)]
sends = [comm.isend(x * r, r) for r in others]
for work in [*receives[::-1], *sends[::-1]]:
    work.wait()
    work.wait()
return into
"""),
    "a message is what the tensor was": program("""
right, left = (rank + 1) % n, (rank - 1) % n
into = torch.zeros_like(x)
if n > 1:
    mine = x.clone()
    work = comm.isend(mine, right)
    mine.zero_()
    receive = comm.irecv(into, left)
    before = into.clone()
    receive.wait()
    work.wait()
    return [before, into]
"""),
    "collectives under way": program("""
works = []
for step in range(4):
    y = x + step
    works.append((comm.all_reduce(y, "max" if step % 2 else "sum", async_op=True), y))
comm.compute(0.5 * rank)
for work, _ in works[::-1]:
    work.wait()
return [y for _, y in works] + [comm.now_s]
"""),
    "in the backward pass": program("""
w = x.clone().requires_grad_()
works = []
def hook(p):
    works.append(comm.all_reduce(p.grad, "avg", async_op=True))
w.register_post_accumulate_grad_hook(hook)
(w * torch.arange(5.0)[: len(x)] * (rank + 1)).sum().backward()
for work in works:
    work.wait()
return w.grad
"""),
    "the virtual clock": program("""
times = []
for step in range(3):
    comm.compute(rank + step)
    into = torch.empty_like(x)
    work = comm.isend(x, (rank + 1) % n) if n > 1 else None
    if n > 1:
        comm.recv(into, (rank - 1) % n)
        work.wait()
    times.append(comm.now_s)
comm.barrier()
return times + [comm.now_s]
"""),
    "marked moments": program("""
from labkit.meters.memory import measure_memory
with measure_memory({}):
    comm.mark("before")
    y = torch.ones(100 * (rank + 1))
    comm.all_reduce(x)
    comm.mark("made")
    comm.compute(rank)
    comm.new_group([rank]).mark("made")
return [y, comm.now_s]
"""),
    "random numbers": program("y = torch.randn(3)\ncomm.all_reduce(y)\nreturn [y, torch.rand(2)]"),
    "the input is changed": program("comm.all_reduce(x)\nreturn x"),
    "a refusal is caught": program("""
try:
    comm.send(x, n)
except CommError as error:
    return str(error)
"""),
    "on another default device": program("""
into, empty = torch.empty_like(x), x[:0].clone()
with torch.device("meta"):
    comm.all_reduce(x)
    comm.all_reduce(empty)
    if n > 1:
        work = comm.isend(x, (rank + 1) % n)
        comm.recv(into, (rank - 1) % n)
        work.wait()
    comm.barrier()
return [x, empty, into if n > 1 else x]
"""),
    "other kinds of seconds": program("comm.compute(True)\ncomm.compute(torch.tensor(2.5))\nreturn comm.now_s"),
}
CASES = (Ranks(3), Ranks(1), Ranks(4, per_node=2))


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_run_is_the_simulated_run(server, name: str) -> None:
    """Values, inputs afterwards, every figure; with a varying number of ranks, on the same processes."""
    runs = routed(server, HONEST[name], *CASES)
    for case, run in zip(CASES, runs, strict=True):
        wanted = simulated(HONEST[name], case)
        assert wanted.trouble is None
        assert {measure.name for measure in MEASURES.values() if measure.meter == RANKS} < set(run.measured)
        assert differences(run, wanted) == [], (case, run, wanted)


WRONG = {
    "a misfit is caught": program("""
if rank < 2:
    y = torch.empty(3) if rank == 1 else x
    try:
        comm.recv(y, 0) if rank else comm.send(y, 1)
    except CommError as error:
        return str(error)
return None
"""),
    "deadlock": program("comm.recv(x, (rank + 1) % n)"),
    "deadlock with one that has ended": program("if rank:\n    comm.recv(x, 0)\nreturn x"),
    "deadlock at a barrier": program("if rank != 1:\n    comm.barrier()\nelse:\n    comm.recv(x, 0)"),
    "deadlock of three": program("comm.barrier() if rank == 0 else comm.send(x, 0)"),
    "shapes": program("comm.send(x, 1) if rank == 0 else comm.recv(torch.empty(3), 0) if rank == 1 else None"),
    "dtypes": program("comm.send(x, 1) if rank == 0 else comm.recv(x.double(), 0) if rank == 1 else None"),
    "a message left over": program("comm.isend(x, (rank + 1) % n)"),
    "a receive left over": program("comm.irecv(x, 1) if rank == 0 else comm.isend(x, 0)"),
    "a collective left over": program("comm.all_reduce(x, async_op=True)"),
    "another collective": program("comm.broadcast(x, 0) if rank == 1 else comm.all_reduce(x)"),
    "another operation": program("comm.all_reduce(x, 'max' if rank else 'sum')"),
    "another root": program("comm.broadcast(x, rank)"),
    "another moment": program("comm.mark(f'after {rank // 2} steps')"),
    "a moment at which one is not": program("if rank != 1:\n    comm.mark('after')"),
    "a moment at which one is alone": program("if rank == 1:\n    comm.mark('after')"),
    "one raises before a moment": program("if rank == 1:\n    x[100]\ncomm.mark('after')"),
    "one leaves before a moment": program("import sys\nif rank == 1:\n    sys.exit(3)\ncomm.mark('after')"),
    "one comes alone": program("if rank == 1:\n    comm.all_reduce(x)"),
    "a rank that there is not": program("comm.send(x, n)"),
    "itself": program("comm.send(x, rank)"),
    "no tensor": program("comm.send(x.tolist(), 1)"),
    "one raises": program("comm.barrier()\nif rank == 2:\n    raise ValueError(f'no {rank}')\ncomm.barrier()"),
    "all raise": program("x[100]"),
    "one leaves": program("import sys\nif rank == 1:\n    sys.exit(3)\ncomm.barrier()"),
    "not written": program("raise NotImplementedError('Write your answer here.')"),
    "everything is swallowed": program("""
for _ in range(3):
    try:
        comm.recv(x, (rank + 1) % n)
    except BaseException:
        pass
comm.barrier()
"""),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_is_told_as_in_the_simulator(server, name: str) -> None:
    """The same words, the same line of the student's; and the case after it is run."""
    cases = (Ranks(3), Ranks(3, size=4))
    wanted = [simulated(WRONG[name], case).trouble for case in cases]
    assert None not in wanted
    found = [run.trouble for run in routed(server, WRONG[name], *cases)]
    # A stub is not run again, as in a worker of one process.
    assert found == (wanted[:1] if name == "not written" else wanted)


def test_threads_that_cells_left_running_change_nothing(server) -> None:
    """Ranks are no forks of what the cells have become."""
    left = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    (run,) = routed(server, left + HONEST["ring"], Ranks(3))
    assert differences(run, simulated(HONEST["ring"], Ranks(3))) == []
