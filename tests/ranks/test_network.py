"""The network's books without any threads: what a router has to do, in the small, with ranks as generators."""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest
import torch

from labkit.ranks import Cluster, Comm, CommError, simulate
from labkit.ranks.collectives import Offer
from labkit.ranks.needs import Need, deadlock
from labkit.ranks.network import Network

Requests = Generator[tuple, torch.Tensor | None, None]
"""A rank: it yields requests and is sent the answers."""


def route(ranks: list[Callable[[], Requests]]) -> Network:
    """Serve the requests of all ranks, one at a time, until all have finished."""
    network = Network(len(ranks), Cluster())
    running = {rank: make() for rank, make in enumerate(ranks)}
    answers: dict[int, Callable[[], torch.Tensor | None]] = dict.fromkeys(running, lambda: None)
    needs: dict[int, list[Need]] = {rank: [] for rank in running}
    while running:
        able = [rank for rank in running if all(need.ready() for need in needs[rank])]
        if not able:
            finished = [rank not in running for rank in range(len(ranks))]
            unmet = [(rank, next(need for need in needs[rank] if not need.ready())) for rank in running]
            raise CommError(deadlock(unmet, finished))
        for rank in able:
            try:
                request = running[rank].send(answers[rank]())
            except StopIteration:
                del running[rank]
                continue
            needs[rank], answers[rank] = serve(network, rank, *request)
    network.check_nothing_left()
    return network


def serve(network: Network, rank: int, what: str, peer: int, tensor: torch.Tensor) -> tuple[list[Need], Callable]:
    if what == "send":
        number, need = network.send(rank, peer, tensor)
        return [need], lambda: network.sent(rank, peer, number)
    if what == "recv":
        number, need = network.post_receive(rank, peer)
        return [need], lambda: network.deliver(rank, peer, number, tensor)
    number, needs = network.enter(rank, Offer("all_reduce", (tensor,), (), op="sum"))
    return needs, lambda: network.leave(rank, number)[0]


def test_a_router_counts_what_the_simulator_counts() -> None:
    sums = []

    def zero() -> Requests:
        yield "send", 1, torch.ones(3)
        sums.append((yield "all_reduce", -1, torch.ones(2)))

    def one() -> Requests:
        assert (yield "recv", 0, torch.empty(3)).tolist() == [1, 1, 1]
        sums.append((yield "all_reduce", -1, torch.ones(2)))

    def simulated(comm: Comm) -> None:
        x = torch.ones(3)
        comm.recv(x, 0) if comm.rank else comm.send(x, 1)
        comm.all_reduce(torch.ones(2))

    assert route([zero, one]).traffic() == simulate(simulated, 2)[1]
    assert [x.tolist() for x in sums] == [[2, 2], [2, 2]]


def test_a_router_tells_of_deadlocks_misfits_and_leftovers() -> None:
    def rank(*requests: tuple) -> Callable[[], Requests]:
        def make() -> Requests:
            # Not `yield from`: a tuple cannot be sent answers.
            for what, peer, tensor in requests:  # noqa: UP028
                yield what, peer, tensor

        return make

    x = torch.zeros(1)
    both_receive = [rank(("recv", 1, x)), rank(("recv", 0, x))]
    with pytest.raises(
        CommError, match="rank 0 waits for a message from rank 1, rank 1 waits for a message from rank 0"
    ):
        route(both_receive)
    with pytest.raises(CommError, match="deadlock: rank 1 waits for rank 0 to receive, which has finished"):
        route([rank(("recv", 1, x)), rank(("send", 0, x), ("send", 0, x))])
    with pytest.raises(CommError, match=r"rank 0 sends float32 of shape \(1,\) and rank 1 receives it into int64 of"):
        route([rank(("send", 1, x)), rank(("recv", 0, x.long()))])
    with pytest.raises(CommError, match="deadlock: rank 0 waits in all_reduce for rank 1, which has finished"):
        route([rank(("all_reduce", -1, x)), rank()])
