"""Lab 01: hidden chips, operators and loads."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.function_calls import Call


def intensity_cases(rng: random.Random) -> tuple[Call, ...]:
    """A made-up chip, each operator on a shape of its own, and loads on both sides of the threshold."""
    n_sms, fma, clock_hz = rng.randint(20, 200), 2 ** rng.randint(6, 12), round(rng.uniform(0.9e9, 2.6e9), -7)
    peak = 2.0 * n_sms * fma * clock_hz
    # Loads are of more than 1 and less than 143 FLOP per byte, on both sides of the threshold.
    flops, bandwidth = rng.uniform(1e8, 1e12), peak / rng.uniform(20, 100)
    at_threshold = flops * bandwidth / peak
    return (
        Call("peak_flops", (n_sms, fma, clock_hz)),
        # First in eight bytes, which no answer takes for granted: half of the bytes is later a tensor that is missing.
        Call("operator_cost", ("add", rng.randint(3, 3000), rng.randint(3, 3000), 0, 8)),
        Call("operator_cost", ("softmax", rng.randint(3, 3000), rng.randint(3, 3000), 0, 4)),
        # Few rows, so that weight and bias weigh enough to be missed.
        Call("operator_cost", ("layernorm", rng.randint(5, 20), rng.randint(300, 3000), 0, rng.choice((2, 4)))),
        Call("operator_cost", ("linear", rng.randint(200, 900), rng.randint(1000, 3000), rng.randint(3100, 5000), 2)),
        Call("operator_cost", ("linear", 1, rng.randint(100, 3000), rng.randint(3100, 9000), 4)),
        Call("least_time", (flops, at_threshold * rng.uniform(0.7, 0.9), peak, bandwidth)),
        Call("least_time", (flops, at_threshold * rng.uniform(1.3, 9.0), peak, bandwidth)),
    )


ARITHMETIC_INTENSITY = Hidden("01-arithmetic-intensity", intensity_cases)
