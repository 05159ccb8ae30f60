"""The peak of a training step by other people's means: each takes what is trained and returns bytes, or raises.

They answer the question as their documentation puts it; what they leave out (activations, adapters) shows as error.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks._trained import Trained
from labkit.meters.memory import training_step


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
    "16 bytes": sixteen_bytes,
    "accelerate": accelerates,
    "MemTracker": mem_tracker,
}
