"""Lab 05: layers that end a pass which never would.

What a layer computes and keeps is no business of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

Layer = Callable[[Tensor], Tensor]
MOST_CALLS = 4
"""Of each layer in a pass with checkpoints, on average: once forward and once again are enough."""


class NeverEnds(RuntimeError):
    """A pass has called its layers more often than checkpoints have to."""


def calls_limited(layers: Sequence[Layer]) -> list[Layer]:
    """The same layers, for a pass with checkpoints, which may call each of them MOST_CALLS times on average.

    A recomputation that runs back through all layers before it, and not to its own input, doubles from layer to layer.
    The layers then raise NeverEnds.
    """
    n_layers, n_calls = len(layers), 0

    def limited(layer: Layer) -> Layer:
        def call(x: Tensor) -> Tensor:
            nonlocal n_calls
            n_calls += 1
            if n_calls > MOST_CALLS * n_layers:
                raise NeverEnds(
                    f"{n_layers} layers were called {n_calls:,} times in one pass, and no end was in sight. Does each "
                    "recomputation run back through all that lies before it?"
                )
            return layer(x)

        return call

    return [limited(layer) for layer in layers]
