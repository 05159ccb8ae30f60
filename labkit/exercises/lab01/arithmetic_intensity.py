"""Lab 01: peak rates, FLOPs and bytes of operators, and which of the two limits them: what is asked and run."""

from __future__ import annotations

from labkit.exercises.lab01.function_calls import Call, drive_calls
from labkit.spec import Answer, Exercise

INTENSITY_FUNCTIONS = ("peak_flops", "operator_cost", "least_time")

ARITHMETIC_INTENSITY = Exercise(
    id="01-arithmetic-intensity",
    title="FLOPs, bytes, and which of them takes the time",
    points=3,
    minutes=12,
    difficulty=2,
    answers=tuple(Answer(name) for name in INTENSITY_FUNCTIONS),
    public=(
        Call("peak_flops", (108, 512, 1.41e9)),  # A100, TF32
        Call("peak_flops", (80, 512, 1.53e9)),  # V100, FP16
        Call("peak_flops", (132, 4096, 1.83e9)),  # H100, FP8
        # First in eight bytes, which no answer takes for granted: half of the bytes is later a tensor that is missing.
        Call("operator_cost", ("add", 1000, 4096, 0, 8)),
        Call("operator_cost", ("softmax", 512, 1024, 0, 4)),
        Call("operator_cost", ("layernorm", 256, 768, 0, 4)),
        Call("operator_cost", ("linear", 1, 4096, 11008, 2)),
        Call("operator_cost", ("linear", 1024, 1024, 1024, 2)),
        Call("least_time", (2.0e9, 6.0e6, 156e12, 1555e9)),
        Call("least_time", (4.0e6, 24.0e6, 312e12, 2039e9)),
        # On the other side of the threshold than of 1 FLOP per byte, and of the first chip's threshold.
        Call("least_time", (6.0e9, 0.15e9, 312e12, 2039e9)),
        Call("least_time", (6.0e9, 0.1e9, 8.1e12, 320e9)),
    ),
    inputs=lambda case, gen: {},
    drive=drive_calls("peak_flops"),
)
