"""Lab 17: what ranks of a large run send one another, kind of group by kind of group. Nothing is judged."""

from __future__ import annotations

ALL_REDUCES_A_LAYER = 4
"""Two in the forward pass and two in the backward pass, after attention and after the MLP."""


def sent_by_kind(
    n_params: float,
    width: int,
    n_layers: int,
    n_tokens: int,
    n_micro: int,
    tensor: int = 8,
    pipeline: int = 4,
    data: int = 2,
) -> dict[str, float]:
    """Bytes that a rank sends in a step, in 16 bits, by kind of group; collectives are rings.

    n_tokens: of a micro-batch.
    """
    activations = 2 * n_tokens * width
    layers = n_layers / pipeline
    of_ring = {n: 2 * (n - 1) / n for n in (tensor, data)}
    return {
        "tensor": ALL_REDUCES_A_LAYER * layers * n_micro * of_ring[tensor] * activations,
        "data": of_ring[data] * 2 * n_params / (tensor * pipeline),
        # Forward to the next stage and backward to the one before.
        "pipeline": 2 * n_micro * activations * (pipeline > 1),
    }
