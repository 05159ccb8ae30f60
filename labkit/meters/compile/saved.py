"""What a forward graph keeps for its backward graph: before, if all were kept that is read there, and as was decided.

It counts storages, each once, and not the graph's own inputs: parameters and batches are there anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.meters.compile.profile import Saved
from labkit.meters.compile.torch_private import copied, storages_of


def partition(real: Callable[..., Any], joint: Any, inputs: Any, **settings: Any) -> tuple[Any, Any, Saved]:
    """(forward graph, backward graph, what is kept) of a joint graph, split by `real`."""
    from torch._functorch.partitioners import default_partition

    kept = {name: value for name, value in settings.items() if name != "compiler"}
    before, _ = default_partition(copied(joint), inputs, **kept)
    forward, backward = real(joint, inputs, **settings)
    n_outputs = settings["num_fwd_outputs"]
    return forward, backward, Saved(kept_bytes(before, n_outputs), kept_bytes(forward, n_outputs))


def kept_bytes(forward: Any, n_outputs: int) -> int:
    """Bytes of the results of a forward graph that are there for its backward graph alone."""
    results = next(node for node in forward.graph.nodes if node.op == "output").args[0]
    own = [node for node in forward.graph.nodes if node.op == "placeholder"]
    sizes = {}
    for node in results[n_outputs:]:
        sizes.update(storages_of(node))
    for node in own:
        for key in storages_of(node):
            sizes.pop(key, None)
    return sum(sizes.values())
