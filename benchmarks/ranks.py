"""Ranks: start-up of our pool beside spawn, forkserver and torchrun; throughput; traffic against the formulas.

A start lasts until every rank has started, met the others over gloo and returned. The ways take turns, so that other
work on the machine meets all alike: how many times as long as our pool one takes, and the CPU time of all its
processes, hardly depend on it. Seconds of the wall clock do; "load" is the number of processes that wanted a core
before and after, by the system's own average. Traffic is simulated for n = 2 … 16 and has no time in it. DDP's
overlap is the meter's figure. One GPU is enough for nothing here, because it has nobody to talk to: what is asked of
NCCL is asked where there are two or more, and is skipped, with the reason, where there are not.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import forkserver
from pathlib import Path

import torch
import torch.distributed as dist

from grading.terminal import say, table
from grading.worker.procfs import cpu_s
from labkit.meters.comm import track_comm
from labkit.ranks import UNIT, Comm, run_ranks, simulate
from labkit.ranks.pool import shared_pool
from tests.ranks.algorithms import ALL, bytes_of, ring, rounds_of

ELEMENTS = 2**18
POOL = "our pool, warm"


def main(argv: list[str]) -> dict:
    """Prints the tables and returns them."""
    parser = argparse.ArgumentParser(prog="benchmarks ranks", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="all-reduces of each kind")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each way to start")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    load_before = os.getloadavg()[0]
    found = {
        "start_s": starts(args.rounds),
        "throughput": [row for backend in ("simulated", "gloo") for row in throughput(args.repeats, backend, 4)],
        "traffic": traffic(),
        "ddp": ddp_overlap("gloo", 2),
        "nccl": nccl(args.repeats),
    }
    load = {"before": round(load_before, 1), "after": round(os.getloadavg()[0], 1), "cores": os.cpu_count()}
    return {"load": load, **found}


def starts(rounds: int) -> list[dict]:
    """How long ranks take that do nothing but meet."""
    shared_pool().close()
    first = alternated({"our pool, first call": partial(run_ranks, _meet, 4, "gloo")}, 1)
    rows = [{"way": way, "ranks": 4, **figures} for way, figures in first.items()]
    for n in (2, 4, 8):
        ways = {
            "simulated": partial(run_ranks, _meet, n),
            POOL: partial(run_ranks, _meet, n, "gloo"),
            "forkserver": partial(_start_processes, "forkserver", n),
            "spawn": partial(_start_processes, "spawn", n),
            "torchrun": partial(_torchrun, n),
        }
        rows += [{"way": way, "ranks": n, **figures} for way, figures in alternated(ways, rounds).items()]
    names = ("best_s", "median_s", "cpu_s", "times_pool")
    texts = [(row["way"], row["ranks"], *(f"{row[name]:.3f}" if name in row else "" for name in names)) for row in rows]
    say(*table(("ranks started by", "n", "best s", "median s", "CPU s", "× our pool"), texts))
    return rows


def alternated(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, dict[str, float]]:
    """By way: the least and the median of its seconds, its CPU seconds, and how many times as long as POOL it took.

    In every round each has a turn. The least of the CPU seconds counts: interruptions only add to them.
    """
    wall_s: dict[str, list[float]] = {way: [] for way in ways}
    used_s: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            began, began_cpu = time.perf_counter(), _cpu_of_all_s()
            run()
            wall_s[way].append(time.perf_counter() - began)
            used_s[way].append(_cpu_of_all_s() - began_cpu)
    found = {}
    for way in ways:
        figures = {"best_s": min(wall_s[way]), "median_s": statistics.median(wall_s[way]), "cpu_s": min(used_s[way])}
        if POOL in ways:
            figures["times_pool"] = statistics.median(mine / pool for mine, pool in zip(wall_s[way], wall_s[POOL]))
        found[way] = {name: round(figure, 4) for name, figure in figures.items()}
    return found


def throughput(repeats: int, backend: str, n: int) -> list[dict]:
    """All-reduce of 1 MiB on n ranks, once they run: our ring and the library's call."""
    rows = []
    for name, call in {"ring of send and receive": ring, "all_reduce": _all_reduce}.items():

        def fn(comm: Comm, call=call) -> list[float]:
            x, seconds = torch.ones(ELEMENTS, device=comm.device), []
            for _ in range(repeats + 1):
                comm.barrier()
                began = time.perf_counter()
                call(comm, x)
                if x.is_cuda:
                    torch.cuda.synchronize()
                comm.barrier()
                seconds.append(time.perf_counter() - began)
            return seconds[1:]

        seconds = run_ranks(fn, n, backend)[0]
        best_s, median_s = min(seconds), statistics.median(seconds)
        row = {"backend": backend, "ranks": n, "call": name, "best_s": round(best_s, 6), "median_s": round(median_s, 6)}
        rows.append({**row, "mib_per_s": round(ELEMENTS * 4 / 2**20 / best_s, 1)})
    texts = [
        (row["backend"], row["call"], f"{1e3 * row['best_s']:.2f}", f"{1e3 * row['median_s']:.2f}", row["mib_per_s"])
        for row in rows
    ]
    say(*table(("backend", "call", "best ms", "median ms", "MiB/s at best"), texts))
    return rows


def traffic() -> list[dict]:
    """Bytes and rounds of each algorithm as counted, beside the formulas, and the CPU time of a simulation."""
    rows = []
    for name, algorithm in ALL.items():
        for n in range(2, 17):
            x = torch.ones(16 * n)
            began = time.process_time()
            counted = simulate(lambda comm, a=algorithm, x=x: a(comm, x), n, UNIT)[1]
            cpu_s = time.process_time() - began
            formula = {"bytes": bytes_of(name, n, x.nbytes), "rounds": rounds_of(name, n)}
            found = {"bytes": sum(counted.bytes_sent), "rounds": int(counted.seconds)}
            rows.append({"algorithm": name, "ranks": n, "counted": found, "formula": formula, "cpu_s": round(cpu_s, 5)})
    wrong = [row for row in rows if row["counted"] != row["formula"]]
    print(f"traffic: {len(rows)} counts, {len(wrong)} differ from their formula; at n = 8 a simulation takes")
    print(", ".join(f"{row['algorithm']} {1e3 * row['cpu_s']:.1f} ms" for row in rows if row["ranks"] == 8))
    return rows


def ddp_overlap(backend: str, n: int) -> dict:
    """The share of DDP's bytes that were under way behind operations of backward, by the size of its buckets."""
    found = {}
    for cap_kib in (16, 64, 4096):

        def fn(comm: Comm, cap_kib=cap_kib) -> tuple[int, float]:
            device = comm.device
            model = torch.nn.Sequential(*(torch.nn.Linear(64, 64, bias=False) for _ in range(8))).to(device)
            x = torch.ones(2, 64, device=device)
            model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=cap_kib / 1024)
            # Its buckets are final in the third step.
            for _ in range(2):
                model(x).sum().backward()
            with track_comm() as log:
                model(x).sum().backward()
            return log.calls_by_name["all_reduce"], log.overlap

        n_calls, overlap = run_ranks(fn, n, backend)[0]
        found[f"{cap_kib} KiB"] = {"all_reduces": n_calls, "overlap": round(overlap, 3)}
    texts = [(cap, *one.values()) for cap, one in found.items()]
    say(*table(("bucket cap", "all-reduces", "overlap"), texts))
    return found


def nccl(repeats: int) -> dict:
    """Throughput and overlap over NCCL, on all GPUs of a machine that has two or more; else why there is none."""
    n = torch.cuda.device_count() if dist.is_nccl_available() else 0
    if n < 2:
        reason = f"a rank of NCCL needs a GPU of its own, and a collective two ranks: this machine has {n}"
        print(f"NCCL: skipped; {reason}")
        return {"skipped": reason}
    return {"gpus": n, "throughput": throughput(repeats, "nccl", n), "ddp": ddp_overlap("nccl", n)}


def _meet(comm: Comm) -> None:
    comm.barrier()


def _all_reduce(comm: Comm, x: torch.Tensor) -> None:
    comm.all_reduce(x.clone())


def _cpu_of_all_s() -> float:
    """CPU time of this process, of what it has waited for, and of the servers that wait for their ranks themselves."""
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    servers = (shared_pool().server_pid, forkserver._forkserver._forkserver_pid)
    alive_s = sum(cpu_s(pid) for pid in servers if pid)
    return time.process_time() + of_children.ru_utime + of_children.ru_stime + alive_s


def _rank(rank: int, world_size: int, path: str) -> None:
    dist.init_process_group("gloo", init_method=Path(path).as_uri(), rank=rank, world_size=world_size)
    dist.barrier()
    dist.destroy_process_group()


def _start_processes(method: str, n: int) -> None:
    import torch.multiprocessing as mp

    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(_rank, args=(n, f"{folder}/meeting"), nprocs=n, start_method=method)


def _torchrun(n: int) -> None:
    text = "import torch.distributed as d\nd.init_process_group('gloo')\nd.barrier()\nd.destroy_process_group()\n"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("meet.py").write_text(text)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n}", "meet.py"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
