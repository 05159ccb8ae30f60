"""Lab 17: the bugs that may be planted into a run on several ranks: what each is called, and where it can be.

What they do stands in `composed`, beside the right program.
"""

from __future__ import annotations

from dataclasses import dataclass

EVERYWHERE = "all"
"""The parameter of a bug that is in all of them."""
N_BLOCKS = 2

OF_ALL = ("averaged twice", "wrong world size", "clipped locally", "one seed")


def _of_blocks(*names: str) -> tuple[str, ...]:
    return tuple(f"blocks.{b}.{name}" for b in range(N_BLOCKS) for name in names)


NORMS = (*_of_blocks("norm1.weight", "norm2.weight"), "norm.weight")
ADDED_BIASES = _of_blocks("o.bias", "down.bias")
KEYS_AND_VALUES = _of_blocks("k.weight", "v.weight")
SITES: dict[str, tuple[str, ...]] = {
    "not summed": (*NORMS, *ADDED_BIASES),
    "replicas not summed": KEYS_AND_VALUES,
    "wrong group": (*_of_blocks("q.weight", "o.weight", "up.weight", "up.bias", "down.weight"), *KEYS_AND_VALUES),
    "on every rank": ADDED_BIASES,
    "ties not summed": ("embed.weight",),
    "backward not reduced": NORMS,
    **dict.fromkeys(OF_ALL, (EVERYWHERE,)),
}
"""By kind of bug the parameters where it may be. No name tells the kind: each parameter can have one of several."""
KINDS = tuple(SITES)
NONE = "none"
"""A run without a bug."""


@dataclass(frozen=True)
class Bug:
    """A bug, and the parameter whose gradient shows it.

    Bug("not summed", "norm.weight")
    """

    kind: str
    parameter: str


NO_BUG = Bug(NONE, NONE)
