"""What this machine can do, and what a few operators get out of it: the measured points of the roofline figure.

Everything is timed on the device that the notebook uses, with one warm-up and the best of several runs; nothing is
counted here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from labkit.devices import device
from labkit.spec import MiB


@dataclass(frozen=True)
class MachinePeaks:
    """peak_flops: the rate of a large matrix product in FLOP/s; bandwidth: of a large copy, in bytes/s, both ways."""

    name: str
    peak_flops: float
    bandwidth: float


@dataclass(frozen=True)
class Measured:
    """One operator's time. arguments: (operator, rows, cols, n_out, itemsize), as an answer receives them."""

    arguments: tuple[str, int, int, int, int]
    seconds: float


def best_time(run: Callable[[], object], n_runs: int = 5, within_s: float = 0.5) -> float:
    """Seconds of the fastest of n_runs, after one that does not count; of two where within_s is over by then."""
    run()
    times: list[float] = []
    _wait()
    begin_s = time.perf_counter()
    while len(times) < n_runs and (len(times) < 2 or time.perf_counter() - begin_s < within_s):
        start_s = time.perf_counter()
        run()
        _wait()
        times.append(time.perf_counter() - start_s)
    return min(times)


def _wait() -> None:
    if device().type == "cuda":
        torch.cuda.synchronize()


def _dtype() -> torch.dtype:
    """float32 on a CPU; float16 on a GPU, for its tensor cores."""
    return torch.float16 if device().type == "cuda" else torch.float32


def measure_machine() -> MachinePeaks:
    """The fastest of two square matrix products; the faster of a copy and an update in place of 64 MiB (1 GiB).

    In brackets what a GPU gets. A copy may be the slower one on a CPU, which reads the target before it writes it.
    """
    on_gpu, where = device().type == "cuda", device()
    rates = []
    for n in (4096, 8192) if on_gpu else (512, 1024):
        a, b = (torch.rand(n, n, device=where, dtype=_dtype()) for _ in range(2))
        rates.append(2 * n**3 / best_time(lambda a=a, b=b: a @ b, n_runs=10))
    source = torch.ones((256 if on_gpu else 16) * MiB, dtype=torch.float32, device=where)
    target = torch.empty_like(source)
    moving_s = min(best_time(run, n_runs=20) for run in (lambda: target.copy_(source), lambda: source.mul_(1.0)))
    name = torch.cuda.get_device_name(where) if on_gpu else f"this CPU, {_threads()}, float32"
    return MachinePeaks(name, max(rates), 2 * source.nbytes / moving_s)


def _threads() -> str:
    n_threads = torch.get_num_threads()
    return f"{n_threads} thread{'s' * (n_threads > 1)}"


def measure_operators(
    rows: int | None = None, cols: int = 1024, widths: Sequence[int] = (1, 8, 64, 512)
) -> list[Measured]:
    """Addition, softmax and layer norm of (rows, cols), and linear layers on inputs of 1 to 512 rows."""
    where, dtype = device(), _dtype()
    rows = rows or (65536 if where.type == "cuda" else 2048)
    size = dtype.itemsize
    x, y = (torch.rand(rows, cols, device=where, dtype=dtype) for _ in range(2))
    weight, bias = (torch.rand(cols, device=where, dtype=dtype) for _ in range(2))
    runs = [
        (("add", rows, cols, 0, size), lambda: x + y),
        (("softmax", rows, cols, 0, size), lambda: F.softmax(x, -1)),
        (("layernorm", rows, cols, 0, size), lambda: F.layer_norm(x, (cols,), weight, bias)),
    ]
    matrix = torch.rand(4 * cols, 4 * cols, device=where, dtype=dtype)
    for width in widths:
        batch = torch.rand(width, 4 * cols, device=where, dtype=dtype)
        runs.append((("linear", width, 4 * cols, 4 * cols, size), lambda batch=batch: F.linear(batch, matrix)))
    return [Measured(arguments, best_time(run)) for arguments, run in runs]
