"""How fast a group of ranks communicates, by where its ranks lie.

Ranks stand in the order of Megatron-LM: tensor fastest, then context, then data, then pipeline. A group is then told
by its stride and its size. All groups of a kind communicate at the same time and share the network of their nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from labkit.plan.things import Cluster


@dataclass(frozen=True)
class Links:
    """The links of a group of `size` ranks, `stride` apart.

    Links(leonardo(2), stride=1, size=4)
    """

    cluster: Cluster
    stride: int
    size: int

    @property
    def n_in_node(self) -> int:
        """How many ranks of a group are in one node."""
        return max(1, min(self.size, self.cluster.devices_per_node // self.stride))

    @property
    def ring_bytes_per_s(self) -> float:
        """Of each rank to the next around a ring.

        A ring leaves a node once, however many of its ranks are there, and shares the network with the other rings.
        The slowest hop sets the pace.
        """
        cluster = self.cluster
        if self.n_in_node == self.size:
            return cluster.node_bytes_per_s
        n_rings = cluster.devices_per_node / self.n_in_node
        return min(cluster.node_bytes_per_s, cluster.network_bytes_per_s / n_rings)

    def ring_s(self, n_bytes: float) -> float:
        """n_bytes from each rank to the next."""
        return n_bytes / self.ring_bytes_per_s if self.size > 1 else 0.0

    def exchange_s(self, n_bytes: float) -> float:
        """An all-to-all of n_bytes that each rank spreads evenly over all, itself included."""
        cluster = self.cluster
        inside = n_bytes * (self.n_in_node - 1) / self.size / cluster.node_bytes_per_s
        outside = n_bytes * (self.size - self.n_in_node) / self.size
        return inside + outside * cluster.devices_per_node / cluster.network_bytes_per_s
