"""Lab 01: hidden models, clusters and bills."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.function_calls import Call


def shape(rng: random.Random, recompute: bool) -> Call:
    """A model in which attention and output layer each take 5 to 20 %. seq is not hidden, n_layers not 2."""
    hidden, n_layers = 64 * rng.randint(3, 16), rng.randint(3, 9)
    seq = hidden * rng.choice((2, 3, 5)) // 4
    vocab = n_layers * hidden * rng.randint(320, 360) // 100
    return Call("flops_per_iteration", (rng.choice((5, 7, 9)), seq, n_layers, hidden, vocab, recompute))


def compute_cases(rng: random.Random) -> tuple[Call, ...]:
    n_params, n_tokens = rng.uniform(1e9, 900e9), rng.uniform(1e11, 20e12)
    n_gpus, flops_per_gpu = rng.randint(8, 20_000), rng.uniform(30e12, 600e12)
    peak_flops, utilization = rng.uniform(100e12, 2e15), rng.uniform(0.15, 0.6)
    gpu_hours = 6 * n_params * n_tokens / (3600 * peak_flops * utilization)
    return (
        shape(rng, True),
        shape(rng, False),
        Call("training_days", (n_params, n_tokens, n_gpus, flops_per_gpu, True)),
        Call("training_days", (n_params, n_tokens, n_gpus, flops_per_gpu, False)),
        Call("training_dollars", (rng.uniform(2, 200), rng.randint(2, 5000), rng.uniform(0.5, 9.0))),
        Call("mfu", (n_params, n_tokens, gpu_hours, peak_flops)),
    )


COMPUTE_DAYS = Hidden("01-compute-days", compute_cases)
