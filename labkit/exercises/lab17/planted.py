"""Lab 17: the bugs that may be planted into a run on several ranks: what each is called, and where it can be.

What they do stands in `composed`, beside the right program.
"""

from __future__ import annotations

from dataclasses import dataclass

EVERYWHERE = "all"
"""The parameter of a bug that is in all of them."""
N_BLOCKS = 2

OF_ALL = ("averaged twice", "wrong world size", "clipped locally", "one seed")
OF_NORMS = tuple(f"blocks.{b}.{norm}.weight" for b in range(N_BLOCKS) for norm in ("norm1", "norm2"))
SITES: dict[str, tuple[str, ...]] = {
    "not summed": (*OF_NORMS, "norm.weight"),
    "replicas not summed": tuple(f"blocks.{b}.{part}.weight" for b in range(N_BLOCKS) for part in "kv"),
    "wrong group": tuple(
        f"blocks.{b}.{part}" for b in range(N_BLOCKS) for part in ("q.weight", "o.weight", "up.weight", "down.weight")
    ),
    "on every rank": tuple(f"blocks.{b}.{part}.bias" for b in range(N_BLOCKS) for part in ("o", "down")),
    "ties not summed": ("embed.weight",),
    "backward not reduced": (*OF_NORMS, "norm.weight"),
    **dict.fromkeys(OF_ALL, (EVERYWHERE,)),
}
"""By kind of bug the parameters where it may be."""
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
