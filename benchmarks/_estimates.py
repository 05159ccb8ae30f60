"""The peak of a training step without running it whole: an estimate takes what is trained and returns bytes, or raises.

Two are lab 01's, in the words of its solution; the others answer the question as their documentation puts it. What they
leave out (activations, adapters) shows as error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from benchmarks._trained import LENGTH, N_SEQUENCES, Trained
from labkit.meters.memory import measure_step, training_step
from tests.exercises.harness import answers_in, solution_of


def napkin(trained: Trained) -> float:
    """Lab 01's closed form: states, what the forward pass keeps, and the loss; of a Llama whose peak is there."""
    if not trained.model.startswith("Llama") or trained.setup not in ("fp32", "bf16"):
        raise NotImplementedError("the lab has closed forms for a Llama without checkpointing or adapters")
    kept = answers_in("01-activation-bytes", solution_of("01-activation-bytes"))["activation_bytes"]
    count = answers_in("01-param-count", solution_of("01-param-count"))["param_count"]
    config, dtype_bytes = trained.config(), 2 if trained.setup == "bf16" else 4
    states_bytes = 3 * dtype_bytes * count(config)
    loss_bytes = 8 * N_SEQUENCES * LENGTH * config.vocab_size
    return states_bytes + kept(config, N_SEQUENCES, LENGTH, "sdpa", dtype_bytes) + loss_bytes


def two_shallow_models(trained: Trained) -> float:
    """Lab 01's other way: a straight line through the measured peaks of one layer and of two."""
    extrapolate = answers_in("01-extrapolate", solution_of("01-extrapolate"))["extrapolate"]
    measured = {n: measure_step(partial(trained.build, n), trained.batch()).peak_bytes for n in (1, 2)}
    return extrapolate(measured, trained.config().num_hidden_layers)


def sixteen_bytes(trained: Trained) -> float:
    """16 bytes for every parameter: fp32 weights, gradients and two states of Adam (or mixed precision's equivalent).

    Rajbhandari and others, ZeRO (2020), section 3.1.
    """
    with torch.device("meta"):
        model, _ = trained.build()
    return 16 * sum(p.numel() for p in model.parameters())


def accelerates(trained: Trained) -> float:
    """What `accelerate estimate-memory` prints for training with Adam, batch size 1, in the model's dtype."""
    from accelerate import init_empty_weights
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    with init_empty_weights(include_buffers=True):
        model, _ = trained.build()
    total_bytes, _ = calculate_maximum_sizes(model)
    dtype = next(model.parameters()).dtype
    if dtype is torch.bfloat16:
        # It takes sizes in float32 and a name for the precision.
        return max(estimate_training_usage(2 * total_bytes, "bfloat16").values())
    return max(estimate_training_usage(total_bytes, "float32").values())


def mem_tracker(trained: Trained) -> float:
    """`torch.distributed._tools.mem_tracker.MemTracker` around the second step, under fake tensors."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    with FakeTensorMode(allow_non_fake_inputs=True):
        model, optimizer = trained.build()
        batch = trained.batch()
        training_step(model, optimizer, batch)
        tracker = MemTracker()
        tracker.track_external(model, optimizer, *batch.values())
        with tracker:
            training_step(model, optimizer, batch)
        peak = tracker.get_tracker_snapshot("peak")
        return sum(snapshot["Total"] for snapshot in peak.values())


ESTIMATES: dict[str, Callable[[Trained], float]] = {
    "napkin": napkin,
    "1 and 2 layers": two_shallow_models,
    "16 bytes": sixteen_bytes,
    "accelerate": accelerates,
    "MemTracker": mem_tracker,
}
