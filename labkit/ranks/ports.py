"""When a message goes over the wire: as soon as both ends are ready and each port on its way is free.

Messages are placed in the order in which the ranks' turns bring them, and take the first gap that is long enough, so
that one which is placed late but ready early is not held up. What is sent is not known here.
"""

from __future__ import annotations

from collections import defaultdict

from labkit.busy_times import BusyTimes
from labkit.ranks.cluster import Cluster


class Ports:
    """The ports of a cluster, and when each is busy. All times in virtual seconds."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lanes: dict[tuple[str, int], list[BusyTimes]] = defaultdict(list)

    def place(self, src: int, dst: int, n_bytes: int, ready_s: float) -> tuple[float, float]:
        """When a message that could go at `ready_s` starts and when it has arrived; its ports are busy in between."""
        cluster = self._cluster
        duration_s = cluster.wire(src, dst).time_s(n_bytes)
        on_way = [("rank out", src, cluster.ports_per_rank), ("rank in", dst, cluster.ports_per_rank)]
        if cluster.crosses(src, dst):
            on_way.append(("node out", cluster.node_of(src), cluster.ports_per_node))
            on_way.append(("node in", cluster.node_of(dst), cluster.ports_per_node))
        groups = [self._group(kind, number, count) for kind, number, count in on_way]
        start_s = ready_s
        while True:
            # A later start at one port may make another one busy: ask until all agree.
            agreed_s = max(min(lane.next_free(start_s, duration_s) for lane in lanes) for lanes in groups)
            if agreed_s == start_s:
                break
            start_s = agreed_s
        for lanes in groups:
            next(lane for lane in lanes if lane.next_free(start_s, duration_s) == start_s).take(start_s, duration_s)
        return start_s, start_s + duration_s

    def _group(self, kind: str, number: int, count: int) -> list[BusyTimes]:
        lanes = self._lanes[kind, number]
        if not lanes:
            lanes.extend(BusyTimes() for _ in range(count))
        return lanes
