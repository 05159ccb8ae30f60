"""Lab 04: rows from which a layer is limited by arithmetic, and tokens per second of a training step."""

from __future__ import annotations

from labkit.exercises.lab01.function_calls import Call, drive_calls
from labkit.spec import Answer, Exercise

ARGUMENTS = {
    "compute_bound_rows": ("n", "peak_flops", "bandwidth", "itemsize"),
    "tokens_per_second": (
        "n_texts",
        "length",
        "n",
        "n_accumulate",
        "peak_flops",
        "bandwidth",
        "itemsize",
        "optimizer_bytes",
    ),
}
"""The functions that are asked for, each with its arguments in order."""
A100 = (312e12, 2039e9)
V100 = (125e12, 900e9)
H100 = (989e12, 3350e9)

THROUGHPUT = Exercise(
    id="04-throughput",
    title="How large a batch keeps the GPU busy",
    points=3,
    minutes=20,
    difficulty=2,
    answers=tuple(Answer(name) for name in ARGUMENTS),
    public=(
        Call("compute_bound_rows", (4096, *A100, 2)),
        Call("compute_bound_rows", (4096, *V100, 2)),
        Call("compute_bound_rows", (8192, 156e12, 2039e9, 4)),
        Call("compute_bound_rows", (256, *A100, 2)),  # never
        Call("compute_bound_rows", (256, 156e12, 2039e9, 4)),  # never, though FLOPs and bytes of a number are fewer
        Call("tokens_per_second", (1, 16, 4096, 1, *A100, 2, 28)),
        Call("tokens_per_second", (4, 512, 4096, 1, *A100, 2, 28)),
        Call("tokens_per_second", (2, 128, 2048, 8, *H100, 2, 16)),
        Call("tokens_per_second", (3, 50, 1024, 4, *V100, 4, 28)),
        Call("tokens_per_second", (8, 512, 4096, 4, *A100, 2, 28)),
        Call("tokens_per_second", (6, 400, 2048, 2, 156e12, 2039e9, 4, 16)),
    ),
    inputs=lambda case, gen: {},
    drive=drive_calls("compute_bound_rows"),
)
