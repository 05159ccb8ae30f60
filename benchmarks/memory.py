"""The peak memory of a training step: ours and others' figures against PyTorch's allocator, on 5 models × 4 set-ups.

The truth is what the CPU allocator gave out in the second training step, really run, on top of what the model, the
optimizer and the batch held at its start. Errors in % of it; seconds are for one figure. It does not time training.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import statistics
import time
import warnings
from collections.abc import Callable

import torch

from benchmarks._estimates import ESTIMATES
from benchmarks._trained import Trained, everything_trained
from grading.terminal import say, table
from labkit.meters.memory import measure_step, track_memory, training_step
from labkit.meters.memory.dropout import byte_masks
from tests.meters.allocator import allocator_peak_bytes

MiB = 2**20


def on_fake(trained: Trained) -> float:
    return measure_step(trained.build, trained.batch(), "fake").peak_bytes


def on_cpu(trained: Trained) -> float:
    return measure_step(trained.build, trained.batch(), "cpu").peak_bytes


WAYS: dict[str, Callable[[Trained], float]] = {"meter, fake": on_fake, "meter, CPU": on_cpu, **ESTIMATES}


def main(argv: list[str]) -> dict:
    """Prints the table and returns it: for each model and set-up the truth, and each way's bytes, error and seconds."""
    parser = argparse.ArgumentParser(prog="benchmarks memory", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models and set-ups whose name contains this")
    parser.add_argument("--repeats", type=int, default=5, help="steps with and without the meter, for its cost")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    rows, result = [], []
    for trained in everything_trained():
        if args.only not in f"{trained.model} {trained.setup}":
            continue
        true_bytes = true_peak_bytes(trained)
        found = {name: figure(way, trained, true_bytes) for name, way in WAYS.items()}
        result.append({"model": trained.model, "setup": trained.setup, "allocator_bytes": true_bytes, "ways": found})
        texts = [f"{way['error_percent']:+.2f} %" if "error_percent" in way else "fails" for way in found.values()]
        rows.append((trained.model, trained.setup, f"{true_bytes / MiB:.1f}", *texts))
        print(*rows[-1], sep=" · ", flush=True)
    seconds = [statistics.median(row["ways"][name].get("seconds", 0.0) for row in result) for name in WAYS]
    rows.append(("median seconds", "", "", *(f"{value:.2f}" for value in seconds)))
    say(*table(("model", "set-up", "MiB", *WAYS), rows))
    return {"rows": result, "cpu_time_ratio": cost_of_the_meter(args.repeats)}


def true_peak_bytes(trained: Trained) -> int:
    """The allocator's peak in the second step, with what was there before it."""
    model, optimizer = trained.build()
    batch = trained.batch()
    training_step(model, optimizer, batch)

    def step() -> None:
        with byte_masks():
            training_step(model, optimizer, batch)

    with track_memory(model, optimizer, batch, sites=False) as start:
        pass
    with contextlib.redirect_stderr(io.StringIO()):
        return start.live_bytes + allocator_peak_bytes(step)


def figure(way: Callable[[Trained], float], trained: Trained, true_bytes: int) -> dict[str, object]:
    """One way's figure, or the error that it fails with."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            n_bytes = way(trained)
    except Exception as error:
        return {"fails": f"{type(error).__name__}: {error}"[:200]}
    seconds = round(time.perf_counter() - start, 3)
    error_percent = round(100 * (n_bytes / true_bytes - 1), 3)
    return {"bytes": int(n_bytes), "error_percent": error_percent, "seconds": seconds}


def cost_of_the_meter(repeats: int) -> dict[str, float]:
    """CPU time of a step under the meter over the same step without it, by turns; medians of all models in fp32."""
    ratios: dict[str, list[float]] = {"without sites": [], "with sites": []}
    for trained in everything_trained():
        if trained.setup != "fp32":
            continue
        model, optimizer = trained.build()
        batch = trained.batch()
        training_step(model, optimizer, batch)
        seconds: dict[str, list[float]] = {"plain": [], "without sites": [], "with sites": []}
        for _ in range(repeats):
            for name, found in seconds.items():
                start = time.process_time()
                with contextlib.ExitStack() as stack:
                    if name != "plain":
                        stack.enter_context(track_memory(model, optimizer, batch, sites=name == "with sites"))
                    training_step(model, optimizer, batch)
                found.append(time.process_time() - start)
        for name, found in ratios.items():
            found.append(statistics.median(seconds[name]) / statistics.median(seconds["plain"]))
    return {name: round(statistics.median(found), 3) for name, found in ratios.items()}
