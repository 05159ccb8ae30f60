"""Lab 01: FLOPs of a training iteration, days, dollars and utilization of a run: what is asked and run."""

from __future__ import annotations

from labkit.exercises.lab01.function_calls import Call, drive_calls
from labkit.spec import Answer, Exercise

COMPUTE_FUNCTIONS = ("flops_per_iteration", "training_days", "training_dollars", "mfu")

COMPUTE_DAYS = Exercise(
    id="01-compute-days",
    title="Days, dollars and utilization of a training run",
    points=3,
    minutes=12,
    difficulty=2,
    answers=tuple(Answer(name) for name in COMPUTE_FUNCTIONS),
    public=(
        # (batch, seq, n_layers, hidden, vocab, recompute)
        Call("flops_per_iteration", (4, 1024, 12, 768, 50257, True)),
        Call("flops_per_iteration", (4, 1024, 12, 768, 50257, False)),
        Call("flops_per_iteration", (2, 512, 3, 256, 1000, True)),
        # (n_params, n_tokens, n_gpus, flops_per_gpu, recompute)
        Call("training_days", (175e9, 300e9, 480, 140e12, True)),
        Call("training_days", (175e9, 300e9, 480, 140e12, False)),
        # (days, n_gpus, dollars_per_gpu_hour)
        Call("training_dollars", (72.34, 480, 2.5)),
        # (n_params, n_tokens, gpu_hours, peak_flops)
        Call("mfu", (8e9, 15e12, 1.46e6, 989e12)),
        Call("mfu", (70e9, 15e12, 7.0e6, 989e12)),
        Call("mfu", (405e9, 15e12, 30.84e6, 989e12)),
    ),
    inputs=lambda case, gen: {},
    drive=drive_calls("flops_per_iteration"),
)
