"""Ranks as threads of one process that take turns: the same run every time, everything counted, nothing measured.

Seconds are those of a virtual clock. Like torch.distributed, `send` returns only once its receiver has asked for the
message, and a tensor is received in place. Threads share their process: an answer could pass values to another rank
without sending them, which is why the grader does not take these counts as proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from labkit.meters.comm import observed, open_logs
from labkit.ranks.cluster import Cluster
from labkit.ranks.collectives import Group, Offer
from labkit.ranks.comm import Comm
from labkit.ranks.groups import GroupComm
from labkit.ranks.network import Network
from labkit.ranks.scheduler import Scheduler
from labkit.ranks.traffic import Traffic


def simulate(fn: Callable[[Comm], Any], world_size: int, cluster: Cluster | None = None) -> tuple[list[Any], Traffic]:
    """Call `fn(comm)` once for each rank; the results in order, and what the ranks sent one another.

    Every rank starts with gradients on, and with the same random numbers on the CPU as every other. cluster: what they
    run on, for the clock and for what crosses nodes; one node without it. Raises CommError where the ranks do not fit
    together, RankFailed where one of them raises.
    """
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}: there must be at least one rank")
    network = Network(world_size, cluster or Cluster())
    scheduler = Scheduler(world_size)
    logs = open_logs()
    results: list[Any] = [None] * world_size

    def body(rank: int) -> None:
        with observed(logs):
            results[rank] = fn(SimulatedComm(network, scheduler, rank))

    scheduler.run(body)
    network.check_nothing_left()
    return results, network.traffic()


class SimulatedComm(Comm):
    """One rank's end of a network in this process."""

    def __init__(self, network: Network, scheduler: Scheduler, rank: int) -> None:
        super().__init__(rank, network.world_size)
        self._network = network
        self._scheduler = scheduler

    @property
    def now_s(self) -> float:
        """This rank's virtual clock."""
        return self._network.clock_s[self.rank]

    def _start_send(self, tensor: torch.Tensor, dst: int) -> Callable[[], None]:
        self._scheduler.check()
        number, need = self._network.send(self.rank, dst, tensor)

        def finish() -> None:
            self._scheduler.wait(self.rank, need)
            self._network.sent(self.rank, dst, number)

        return finish

    def _start_recv(self, tensor: torch.Tensor, src: int) -> Callable[[], None]:
        self._scheduler.check()
        number, need = self._network.post_receive(self.rank, src)

        def finish() -> None:
            self._scheduler.wait(self.rank, need)
            tensor.detach().copy_(self._network.deliver(self.rank, src, number, tensor))

        return finish

    def _group(self, ranks: tuple[int, ...]) -> Comm:
        return GroupComm(self, ranks)

    def _barrier(self, group: Group) -> None:
        self._scheduler.check()
        number, needs = self._network.enter_barrier(self.rank, group)
        for need in needs:
            self._scheduler.wait(self.rank, need)
        self._network.leave_barrier(self.rank, number, group)

    def _mark(self, label: str, held_bytes: int | None) -> None:
        self._scheduler.check()
        for need in self._network.mark(self.rank, label, held_bytes):
            self._scheduler.wait(self.rank, need)

    def _start_collective(self, offer: Offer) -> Callable[[], None]:
        self._scheduler.check()
        number, needs = self._network.enter(self.rank, offer)

        def finish() -> None:
            for need in needs:
                self._scheduler.wait(self.rank, need)
            for into, result in zip(offer.outputs, self._network.leave(self.rank, number)):
                into.detach().copy_(result)

        return finish

    def _compute(self, seconds: float) -> None:
        self._scheduler.check()
        self._network.clock_s[self.rank] += seconds
