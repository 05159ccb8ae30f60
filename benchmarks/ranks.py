"""Ranks: start-up of our pool beside spawn, forkserver and torchrun; throughput; traffic against the formulas.

Times are medians of the repeats, in seconds of the wall clock, until every rank has started, met the others over gloo
and returned; "load" is the number of processes that wanted a core before and after it, by the system's own average,
and beside other work every time here is too long. Traffic is simulated for n = 2 … 16 and has no time in it. DDP's
overlap is the meter's figure. One GPU is enough for nothing here, because it has nobody to talk to: what is asked of
NCCL is asked where there are two or more, and is skipped, with the reason, where there are not.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from grading.commands.shared import table
from labkit.meters.comm import track_comm
from labkit.ranks import UNIT, Comm, run_ranks, simulate
from labkit.ranks.pool import shared_pool
from tests.ranks.algorithms import ALL, bytes_of, ring, rounds_of

ELEMENTS = 2**18


def main(argv: list[str]) -> dict:
    """Prints the tables and returns them."""
    parser = argparse.ArgumentParser(prog="benchmarks ranks", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="runs of our own backends")
    parser.add_argument("--slow-repeats", type=int, default=3, help="runs of the others, which take seconds each")
    told = parser.parse_args(argv)
    torch.set_num_threads(1)
    load_before = os.getloadavg()[0]
    found = {
        "start_s": starts(told.repeats, told.slow_repeats),
        "throughput": [row for backend in ("simulated", "gloo") for row in throughput(told.repeats, backend, 4)],
        "traffic": traffic(),
        "ddp": ddp_overlap("gloo", 2),
        "nccl": nccl(told.repeats),
    }
    load = {"before": round(load_before, 1), "after": round(os.getloadavg()[0], 1), "cores": os.cpu_count()}
    return {"load": load, **found}


def starts(repeats: int, slow_repeats: int) -> list[dict]:
    """How long ranks take that do nothing but meet."""
    pool = shared_pool()
    pool.close()
    rows = []
    began = time.perf_counter()
    run_ranks(_nothing, 4, "gloo")
    rows.append({"way": "our pool, first call", "ranks": 4, "median_s": round(time.perf_counter() - began, 3)})
    for n in (2, 4, 8):
        ways: dict[str, tuple[Callable[[], object], int]] = {
            "simulated": (partial(run_ranks, _meet, n), repeats),
            "our pool, warm": (partial(run_ranks, _meet, n, "gloo"), repeats),
            "forkserver": (partial(_start_processes, "forkserver", n), slow_repeats),
            "spawn": (partial(_start_processes, "spawn", n), slow_repeats),
            "torchrun": (partial(_torchrun, n), slow_repeats),
        }
        rows += [{"way": way, "ranks": n, **_times(run, count)} for way, (run, count) in ways.items()]
    texts = [(r["way"], r["ranks"], f"{r['median_s']:.3f}", f"{r.get('max_s', r['median_s']):.3f}") for r in rows]
    print(table(("ranks started by", "n", "median s", "max s"), texts))
    return rows


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

        median_s = statistics.median(run_ranks(fn, n, backend)[0])
        mib_per_s = ELEMENTS * 4 / 2**20 / median_s
        row = {"backend": backend, "ranks": n, "call": name, "median_s": round(median_s, 6)}
        rows.append({**row, "mib_per_s": round(mib_per_s, 1)})
    texts = [(row["backend"], row["call"], f"{1e3 * row['median_s']:.2f}", f"{row['mib_per_s']:.0f}") for row in rows]
    print(table(("backend", "call", "median ms", "MiB/s"), texts))
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
    print(table(("bucket cap", "all-reduces", "overlap"), [(cap, *one.values()) for cap, one in found.items()]))
    return found


def nccl(repeats: int) -> dict:
    """Throughput and overlap over NCCL, on all GPUs of a machine that has two or more; else why there is none."""
    n = torch.cuda.device_count() if dist.is_nccl_available() else 0
    if n < 2:
        reason = f"a rank of NCCL needs a GPU of its own, and a collective two ranks: this machine has {n}"
        print(f"NCCL: skipped; {reason}")
        return {"skipped": reason}
    return {"gpus": n, "throughput": throughput(repeats, "nccl", n), "ddp": ddp_overlap("nccl", n)}


def _nothing(comm: Comm) -> None:
    pass


def _meet(comm: Comm) -> None:
    comm.barrier()


def _all_reduce(comm: Comm, x: torch.Tensor) -> None:
    comm.all_reduce(x.clone())


def _times(run: Callable[[], object], repeats: int) -> dict[str, float]:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return {"median_s": round(statistics.median(seconds), 4), "max_s": round(max(seconds), 4), "repeats": repeats}


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
