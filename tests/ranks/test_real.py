"""Ranks that are processes on gloo: the same values and counts as simulated, and nothing of a run is left behind.

Functions are defined inside of the tests, as they are in a notebook: they travel to the ranks by value.
"""

from __future__ import annotations

import linecache
import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch

from labkit.ranks import (
    Cluster,
    Comm,
    CommError,
    RankFailed,
    RanksHung,
    RemoteError,
    measure_ranks,
    run_ranks,
    simulate,
)
from labkit.ranks.pool import Pool, environment, shared_pool
from labkit.ranks.real import MISSING_WAIT
from tests.ranks.algorithms import ALL, everything

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def gloo(fn, n: int, timeout_s: float = 60.0) -> list:
    return run_ranks(fn, n, "gloo", timeout_s)


def told(error: type[Exception], fn, n: int, timeout_s: float = 60.0, backend: str = "gloo") -> str:
    """The text of the error that this ends with, without its notes."""
    with pytest.raises(error) as caught:
        run_ranks(fn, n, backend, timeout_s)
    return str(caught.value)


def gone(pid: int) -> bool:
    """Whether a process has ended, or soon will have; what nobody has collected yet has ended, too."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("name", ALL)
def test_values_and_counts_are_those_of_the_simulator(name: str) -> None:
    cluster = Cluster(ranks_per_node=2)
    cases = [(torch.float32, 0), (torch.bfloat16, 3), (torch.int64, 7)]
    algorithm = ALL[name]

    def fn(comm: Comm) -> list[torch.Tensor]:
        inputs = [torch.arange(size).to(dtype) * (comm.rank + 1) for dtype, size in cases]
        return [algorithm(comm, x) for x in inputs]

    for n in (1, 3, 4):
        results, traffic = measure_ranks(fn, n, "gloo", cluster=cluster)
        simulated, wanted = simulate(fn, n, cluster)
        assert traffic == wanted
        for found, expected in zip(results, simulated):
            assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(found, expected))


@pytest.mark.parametrize("n", [1, 3])
def test_collectives_are_those_of_the_simulator(n: int) -> None:
    def fn(comm: Comm) -> list[dict]:
        return [everything(comm, size, dtype) for size, dtype in ((0, torch.float32), (7, torch.int64))]

    results, traffic = measure_ranks(fn, n, "gloo")
    simulated, wanted = simulate(fn, n)
    torch.testing.assert_close(results, simulated, rtol=0, atol=0)
    assert traffic == wanted


@pytest.mark.slow
def test_torch_distributed_itself_works() -> None:
    def fn(comm: Comm) -> tuple:
        import torch.distributed as dist

        x = torch.tensor([comm.rank + 1.0])
        dist.all_reduce(x)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
        model(x * comm.rank).sum().backward()
        environment = {name: os.environ[name] for name in ("RANK", "WORLD_SIZE")}
        return x.item(), model.module.weight.grad.item(), dist.get_backend(), environment

    zero, one = gloo(fn, 2)
    assert zero == (3.0, 1.5, "gloo", {"RANK": "0", "WORLD_SIZE": "2"})
    assert one == (3.0, 1.5, "gloo", {"RANK": "1", "WORLD_SIZE": "2"})


def test_a_message_is_what_the_tensor_was_in_any_layout() -> None:
    def fn(comm: Comm) -> torch.Tensor:
        x = torch.arange(6.0).view(2, 3).t()
        if comm.rank == 0:
            work = comm.isend(x, 1)
            x.zero_()
            work.wait()
            return x
        into = torch.zeros(2, 3).t()
        assert not into.is_contiguous()
        works = [comm.irecv(into, 0)]
        works[0].wait()
        works[0].wait()
        return into

    assert gloo(fn, 2)[1].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


@pytest.mark.parametrize("backend", ["simulated", "gloo"])
def test_a_tensor_that_is_touched_before_its_wait(backend: str) -> None:
    """It is old until then, what is written into it is lost, and what was sent stays what it was."""

    def fn(comm: Comm) -> list[float]:
        mine, theirs, total = torch.tensor(comm.rank + 1.0), torch.tensor(-1.0), torch.tensor(comm.rank + 1.0)
        works = [comm.isend(mine, 1 - comm.rank), comm.irecv(theirs, 1 - comm.rank)]
        works.append(comm.all_reduce(total, async_op=True))
        before = [theirs.item(), total.item()]
        for tensor in (mine, theirs, total):
            tensor.fill_(7)
        for work in works:
            work.wait()
        return [*before, mine.item(), theirs.item(), total.item()]

    assert run_ranks(fn, 2, backend) == [[-1.0, 1.0, 7.0, 2.0, 3.0], [-1.0, 2.0, 7.0, 1.0, 3.0]]


def test_ranks_start_as_the_simulated_do() -> None:
    def fn(comm: Comm) -> tuple:
        return torch.rand(2).tolist(), torch.get_default_dtype(), torch.is_grad_enabled(), os.getcwd()

    torch.manual_seed(5)
    state = torch.get_rng_state()
    found = gloo(fn, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert found == simulate(fn, 2)[0]


def test_what_a_rank_prints_is_tagged(capfd: pytest.CaptureFixture[str]) -> None:
    def fn(comm: Comm) -> None:
        for rank in range(comm.world_size):
            if rank == comm.rank:
                print("a\nb", end="", flush=True)
                print("c")
                os.write(2, b"noise of a library\n")
            comm.barrier()
        print("no line end", end="")

    gloo(fn, 2)
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == sorted(f"[rank {r}] {t}" for r in (0, 1) for t in ("a", "bc", "no line end"))
    assert err == ""


def test_an_error_names_its_rank_and_its_lines() -> None:
    class Lost(Exception):
        pass

    def fn(comm: Comm) -> None:
        if comm.rank == 1:
            raise Lost("here")
        comm.recv(torch.zeros(1), 1)

    with pytest.raises(RankFailed) as caught:
        gloo(fn, 2)
    assert str(caught.value) == "rank 1 raised Lost: here"
    assert type(caught.value.__cause__).__name__ == "Lost" and caught.value.rank == 1
    lines = caught.value.trace.split("\n")
    assert all(line.startswith("[rank 1] ") for line in lines)
    assert f'"{__file__}"' in lines[0] and "in fn" in lines[0]
    assert lines[1:] == ['[rank 1]     raise Lost("here")', "[rank 1] Lost: here"]


def test_a_cell_that_is_no_file_is_shown_by_its_lines_alone() -> None:
    """As in IPython without a kernel, and in some notebooks on the web."""
    name, source, cell = "<ipython-input-1-90af3c>", "def fn(comm):\n    raise ValueError('no')\n", {}
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), cell)
    with pytest.raises(RankFailed) as caught:
        gloo(cell["fn"], 1)
    lines = [f'  File "{name}", line 2, in fn', "    raise ValueError('no')", "ValueError: no"]
    assert caught.value.trace.split("\n") == [f"[rank 0] {line}" for line in lines]


def test_an_error_that_cannot_be_sent_is_told() -> None:
    def fn(comm: Comm) -> None:
        error = ValueError("held")
        error.lock = __import__("threading").Lock()
        raise error

    with pytest.raises(RankFailed, match="rank 0 raised RemoteError: ValueError: held"):
        gloo(fn, 1)


def test_mistakes_have_the_simulator_s_sentences() -> None:
    def wrong_rank(comm: Comm) -> None:
        if comm.rank == 0:
            comm.send(torch.zeros(1), 2)

    assert (
        told(CommError, wrong_rank, 2) == "rank 0 tries to send to rank 2, but the ranks are the whole numbers 0 to 1"
    )

    def never_received(comm: Comm) -> None:
        if comm.rank == 0:
            comm.isend(torch.zeros(1), 1)

    assert told(CommError, never_received, 2) == "rank 0 sent a message to rank 1 that rank 1 never received"

    def other_shape(comm: Comm) -> None:
        if comm.rank == 0:
            comm.send(torch.zeros(4), 1)
        else:
            comm.recv(torch.zeros(2, 2), 0)

    sentence = "rank 0 sends float32 of shape (4,) and rank 1 receives it into float32 of shape (2, 2)"
    assert told(CommError, other_shape, 2) == sentence


def test_what_cannot_be_sent_is_said() -> None:
    lock = __import__("threading").Lock()
    with pytest.raises(TypeError, match=r"cannot be sent to the ranks, .*lock.*: make that inside of the function"):
        gloo(lambda comm: lock, 2)

    text = told(RankFailed, lambda comm: __import__("threading").Lock(), 1)
    assert text.startswith("rank 0 raised TypeError") and "lock" in text


@pytest.mark.parametrize(("code", "how"), [(None, "was ended by SIGKILL"), (3, "ended with exit code 3")])
def test_a_rank_that_dies_is_named_rather_than_those_who_notice(code: int | None, how: str) -> None:
    def fn(comm: Comm) -> None:
        if comm.rank == 1:
            if code is None:
                os.kill(os.getpid(), 9)
            os.write(2, b"out of luck\n")
            os._exit(code)
        comm.barrier()

    with pytest.raises(RankFailed, match=f"^the process of rank 1 {how} before its function returned") as caught:
        gloo(fn, 3)
    assert isinstance(caught.value.__cause__, RemoteError)
    assert str(caught.value.__cause__).endswith("out of luck") == (code == 3)


@pytest.mark.slow
def test_a_hang_ends_with_a_sentence_and_every_stack() -> None:
    def stuck(comm: Comm) -> None:
        if comm.rank == 2:
            return
        comm.recv(torch.zeros(1), 1 - comm.rank)

    with pytest.raises(RanksHung) as caught:
        gloo(stuck, 3, timeout_s=3)
    assert str(caught.value) == (
        "the ranks did not finish in 3 s: rank 0 waits for a message from rank 1, "
        "rank 1 waits for a message from rank 0, rank 2 has finished"
    )
    for rank in (0, 1):
        assert f"[rank {rank}]     comm.recv(torch.zeros(1), 1 - comm.rank)" in caught.value.stacks.split("\n")
    assert "[rank 2]" not in caught.value.stacks


@pytest.mark.slow
def test_a_hang_for_a_missing_wait_says_whose() -> None:
    """A message is lost with the last reference to its Work."""

    def drops(comm: Comm) -> None:
        x = torch.zeros(100_000)
        comm.isend(x, 1 - comm.rank)
        comm.recv(x, 1 - comm.rank)

    with pytest.raises(RanksHung) as caught:
        gloo(drops, 2, timeout_s=3)
    text = str(caught.value)
    assert "without wait() for its isend to rank" in text and text.endswith(MISSING_WAIT)


@pytest.mark.slow
def test_an_endless_loop_is_shown() -> None:
    def endless(comm: Comm) -> None:
        comm.barrier()
        while comm.rank == 1:
            pass
        comm.all_reduce(torch.zeros(1))

    with pytest.raises(RanksHung) as caught:
        gloo(endless, 2, timeout_s=3)
    assert str(caught.value).endswith("rank 0 waits in all_reduce for the others, rank 1 is still running")
    assert "while comm.rank == 1:" in caught.value.stacks or "pass" in caught.value.stacks


@pytest.mark.full("ranks")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell another process's CPU time")
def test_four_ranks_of_a_warm_pool_are_quick() -> None:
    def used_s() -> float:
        """CPU time of this process, of the server, and of the ranks that it has ended."""
        fields = Path(f"/proc/{shared_pool().server_pid}/stat").read_text().rpartition(")")[2].split()
        return time.process_time() + sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def once() -> float:
        began = used_s()
        gloo(lambda comm: comm.barrier(), 4)
        return used_s() - began

    gloo(lambda comm: None, 1)
    # About 60 ms, which two cores do in less than as many; in CPU time, because the machine may be busy.
    assert min(once() for _ in range(10)) < 0.15


@pytest.mark.full("ranks")
def test_nothing_is_left_of_a_run(tmp_path) -> None:
    def fn(comm: Comm) -> list[int]:
        import subprocess

        child = subprocess.Popen(["sleep", "600"])
        (tmp_path / f"{comm.rank}").write_text(f"{os.getpid()} {child.pid}")
        comm.barrier()
        if how == "hangs" or (how == "fails" and comm.rank == 0):
            comm.recv(torch.zeros(1), 1 - comm.rank)
        assert how != "fails"

    for how, error in (("returns", None), ("fails", RankFailed), ("hangs", RanksHung)):
        if error is None:
            gloo(fn, 2)
        else:
            with pytest.raises(error):
                gloo(fn, 2, timeout_s=3)
        pids = [int(pid) for rank in "01" for pid in (tmp_path / rank).read_text().split()]
        assert len(pids) == 4 and all(map(gone, pids)), how


@pytest.mark.full("ranks")
def test_a_server_that_is_gone_is_replaced() -> None:
    gloo(lambda comm: None, 1)
    pid = shared_pool().server_pid
    os.kill(pid, signal.SIGKILL)
    shared_pool()._process.wait(10)
    assert gloo(lambda comm: comm.rank, 2) == [0, 1]
    assert shared_pool().server_pid != pid


@pytest.mark.full("ranks")
def test_a_server_that_hears_nothing_is_ended_with_its_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, (ours, theirs) = Pool(), Pipe()
    with ours, theirs, pool.ranks([theirs.fileno()]) as ranks:
        pids = [pool.server_pid, *ranks.pids]
        os.kill(pool.server_pid, signal.SIGSTOP)
        monkeypatch.setattr("labkit.ranks.pool.REPLY_S", 0.2)
        monkeypatch.setattr("labkit.ranks.pool.END_S", 0.2)
    assert all(map(gone, pids)) and len(pids) == 2 and pool.server_pid is None


@pytest.mark.full("ranks")
def test_a_closed_pool_leaves_nothing_and_starts_again() -> None:
    pool = Pool()
    pool.close()
    pids = []
    for _ in range(2):
        with pool.ranks([]):
            pids.append(pool.server_pid)
        pool.close()
        pool.close()
    assert len(set(pids)) == 2 and all(map(gone, pids))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    wanted = "ranks in processes of their own need the package cloudpickle; install it with: pip install cloudpickle"
    assert told(ImportError, lambda comm: None, 1) == wanted


def test_what_cannot_run_here_is_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(comm: Comm) -> None:
        pass

    assert told(ValueError, nothing, 0) == "world_size is 0: there must be at least one rank"
    assert told(ValueError, nothing, 1, timeout_s=0) == "timeout_s is 0: the ranks need some time"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    wanted = "nccl needs a GPU for each rank: 2 are asked for and here is 1 GPU; use backend='gloo'"
    assert told(ValueError, nothing, 2, backend="nccl") == wanted
    with monkeypatch.context() as patch:

        def refused(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        patch.setattr(socket, "socket", refused)
        wanted = (
            "ranks in processes talk over this machine's loopback network, which this program may not use (Permission "
            "denied). While a notebook is graded that is as it should be, and costs no points; elsewhere use "
            "backend='simulated'"
        )
        assert told(ValueError, nothing, 1) == wanted
    monkeypatch.delattr(os, "fork")
    wanted = "ranks in processes need Linux or macOS: use backend='simulated', which runs everywhere"
    assert told(ValueError, nothing, 1) == wanted


@pytest.mark.slow
def test_the_process_that_ranks_are_forked_from_leaves_the_gpu_to_them() -> None:
    pretended = """
import torch
from torch import cuda

def initialized():
    raise SystemExit("CUDA was initialized, and no fork can use it")

torch._C._cuda_getDeviceCount = initialized
cuda._is_compiled, cuda._device_count_nvml = (lambda: True), (lambda: 1)

import importlib
from labkit.ranks.server import PRELOAD

for name in PRELOAD:
    importlib.import_module(name)
print(torch.cuda.is_available())
"""
    told = subprocess.run([sys.executable, "-c", pretended], env=environment(), capture_output=True, text=True)
    assert (told.stdout, told.stderr) == ("True\n", "")


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 2])
def test_nccl(n: int) -> None:
    if torch.cuda.device_count() < n:
        pytest.skip(f"nccl needs {n} GPUs for {n} ranks, and there are {torch.cuda.device_count()}")

    def fn(comm: Comm) -> torch.Tensor:
        x = torch.full((4,), comm.rank + 1.0, device=comm.device)
        comm.all_reduce(x)
        return ALL["ring"](comm, x)

    results, traffic = measure_ranks(fn, n, "nccl")
    assert all(torch.equal(x, torch.full((4,), float(n * n * (n + 1) // 2))) for x in results)
    assert traffic == simulate(fn, n)[1]
