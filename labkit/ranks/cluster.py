"""The machine that simulated ranks run on: how they are dealt to nodes, what a message costs, how many ports.

Numbers only, in the α–β model: a message of n bytes takes α + n β, and holds the ports it goes through all the while.
There is no contention inside a switch and no limit on what a rank computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Wire:
    """One kind of connection: α in seconds, and 1/β in bytes per second.

    Wire(alpha_s=3e-6, bytes_per_s=200e9)
    """

    alpha_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        if self.alpha_s < 0 or not self.bytes_per_s > 0:
            raise ValueError(
                f"a wire needs alpha_s of 0 or more and a positive bytes_per_s, not {self.alpha_s} and "
                f"{self.bytes_per_s}"
            )

    def time_s(self, n_bytes: int) -> float:
        """How long a message of `n_bytes` takes."""
        return self.alpha_s + n_bytes / self.bytes_per_s


@dataclass(frozen=True)
class Cluster:
    """Ranks 0, 1, ... fill the nodes one after the other; without `ranks_per_node` they are all in one.

        Cluster(ranks_per_node=4)

    A rank sends over `ports_per_rank` ports at a time and receives over as many others; what crosses from one node to
    another goes through one of the `ports_per_node` of each as well. The rates are those of eight GPUs joined by
    NVLink, with one 200 Gbit/s network port a node.
    """

    ranks_per_node: int | None = None
    within: Wire = Wire(alpha_s=3e-6, bytes_per_s=200e9)
    across: Wire = Wire(alpha_s=10e-6, bytes_per_s=25e9)
    ports_per_rank: int = 1
    ports_per_node: int = 1

    def __post_init__(self) -> None:
        counts = {"ports_per_rank": self.ports_per_rank, "ports_per_node": self.ports_per_node}
        if self.ranks_per_node is not None:
            counts["ranks_per_node"] = self.ranks_per_node
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"{name} is {count}: a cluster needs at least one")

    def node_of(self, rank: int) -> int:
        """The number of the node that a rank is on."""
        return rank // self.ranks_per_node if self.ranks_per_node else 0

    def crosses(self, src: int, dst: int) -> bool:
        """Whether a message leaves its node."""
        return self.node_of(src) != self.node_of(dst)

    def wire(self, src: int, dst: int) -> Wire:
        """What connects two ranks."""
        return self.across if self.crosses(src, dst) else self.within


UNIT = Cluster(within=Wire(1.0, math.inf), across=Wire(1.0, math.inf))
"""Every message takes one second, whatever its size: seconds are then the textbook's rounds, in each of which a rank
sends at most one message and receives at most one. (`Traffic.rounds` lets a rank send to many in one round.)"""
