"""The virtual clock of simulated ranks: α–β times by hand, ports that are busy, nodes, computing meanwhile."""

from __future__ import annotations

import pytest
import torch

from labkit.ranks import Cluster, Comm, Wire, simulate
from tests.ranks.algorithms import ALL

ALPHA_S, RATE = 1e-5, 1e9
FLAT = Cluster(within=Wire(ALPHA_S, RATE))
TWO_NODES = Cluster(ranks_per_node=2, within=Wire(1.0, 1e12), across=Wire(10.0, 1e12))


def time_s(fn, n: int, cluster: Cluster = FLAT) -> float:
    return simulate(fn, n, cluster)[1].seconds


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("n_floats", [0, 4096])
def test_the_textbook_s_times(n: int, n_floats: int) -> None:
    x = torch.zeros(n_floats)
    whole_s, part_s = ALPHA_S + x.nbytes / RATE, ALPHA_S + x.nbytes / n / RATE
    log = n.bit_length() - 1
    wanted = {
        "ring": 2 * (n - 1) * part_s,
        # Rank 0 has one port in and one out: what reaches it and leaves it does so one after the other.
        "naive": 2 * (n - 1) * whole_s,
        "tree": 2 * log * whole_s,
        "butterfly": log * whole_s,
    }
    found = {name: time_s(lambda comm, fn=fn: fn(comm, x), n) for name, fn in ALL.items()}
    assert found == pytest.approx(wanted, rel=1e-9)


def test_each_wins_somewhere() -> None:
    def winner(n_floats: int) -> str:
        x = torch.zeros(n_floats)
        return min(ALL, key=lambda name: time_s(lambda comm: ALL[name](comm, x), 8))

    assert (winner(1), winner(100_000)) == ("butterfly", "ring")


def test_a_node_has_one_port_for_what_leaves_it() -> None:
    def both_cross(comm: Comm) -> None:
        x = torch.zeros(0)
        if comm.rank < 2:
            comm.send(x, comm.rank + 2)
        else:
            comm.recv(x, comm.rank - 2)

    traffic = simulate(both_cross, 4, TWO_NODES)[1]
    assert traffic.time_s == (10.0, 20.0, 10.0, 20.0) and traffic.rounds_across == 1
    two_ports = Cluster(2, TWO_NODES.within, TWO_NODES.across, ports_per_node=2)
    assert time_s(both_cross, 4, two_ports) == 10.0
    assert time_s(both_cross, 4, Cluster(4, TWO_NODES.within)) == 1.0


def test_what_crosses_nodes_is_counted() -> None:
    def chain(comm: Comm) -> None:
        x = torch.zeros(5)
        if comm.rank > 0:
            comm.recv(x, comm.rank - 1)
        if comm.rank < comm.world_size - 1:
            comm.send(x, comm.rank + 1)

    traffic = simulate(chain, 6, TWO_NODES)[1]
    assert (traffic.rounds, traffic.rounds_across) == (5, 2)
    assert traffic.bytes_across == (20, 20, 0) and traffic.seconds == pytest.approx(3 * 1 + 2 * 10)
    assert [(one.src, one.dst, one.number) for one in traffic.transfers] == [(r, r + 1, r + 1) for r in range(5)]
    assert traffic.transfers[1].start_s == traffic.transfers[0].end_s


def test_a_flat_ring_of_ranks_dealt_round_robin_crosses_more_often() -> None:
    """The ratio that the hierarchical exercise is about: ranks per node times as much leaves each node."""
    n_nodes, per_node = 4, 4
    x = torch.zeros(16 * 16)
    cluster = Cluster(per_node)
    in_order = simulate(lambda comm: ALL["ring"](comm, x), 16, cluster)[1]
    dealt = [rank % per_node * n_nodes + rank // per_node for rank in range(16)]

    class Dealt:
        """The same network with the ranks renamed."""

        def __init__(self, comm: Comm) -> None:
            self.comm, self.rank, self.world_size = comm, dealt.index(comm.rank), 16

        def isend(self, tensor, dst):
            return self.comm.isend(tensor, dealt[dst])

        def recv(self, tensor, src):
            return self.comm.recv(tensor, dealt[src])

    round_robin = simulate(lambda comm: ALL["ring"](Dealt(comm), x), 16, cluster)[1]
    assert sum(round_robin.bytes_sent) == sum(in_order.bytes_sent)
    assert sum(round_robin.bytes_across) == per_node * sum(in_order.bytes_across)
    assert round_robin.seconds > in_order.seconds


def test_computing_hides_a_collective_that_nobody_waits_for_yet() -> None:
    x = torch.zeros(4000)
    alone_s = time_s(lambda comm: comm.all_reduce(x.clone()), 4)
    assert alone_s == pytest.approx(6 * (ALPHA_S + 4000 / RATE))

    def overlapped(comm: Comm, compute_s: float, async_op: bool) -> float:
        work = comm.all_reduce(x.clone(), async_op=async_op)
        comm.compute(compute_s)
        if work:
            work.wait()
        return comm.now_s

    for compute_s in (alone_s / 2, alone_s * 2):
        assert time_s(lambda comm, s=compute_s: overlapped(comm, s, True), 4) == pytest.approx(max(compute_s, alone_s))
        assert time_s(lambda comm, s=compute_s: overlapped(comm, s, False), 4) == pytest.approx(compute_s + alone_s)


def test_collectives_of_a_rank_run_one_after_the_other() -> None:
    def two(comm: Comm) -> None:
        for work in [comm.all_reduce(torch.zeros(0), async_op=True) for _ in range(2)]:
            work.wait()

    for n_ports in (1, 2):
        cluster = Cluster(within=FLAT.within, ports_per_rank=n_ports)
        assert time_s(two, 3, cluster) == pytest.approx(8 * ALPHA_S)


def test_the_slowest_is_waited_for() -> None:
    def late(comm: Comm) -> float:
        comm.compute(float(comm.rank))
        comm.barrier()
        return comm.now_s

    assert simulate(late, 3)[0] == [2.0, 2.0, 2.0]

    def late_sender(comm: Comm) -> None:
        x = torch.zeros(0)
        if comm.rank:
            comm.recv(x, 0)
        else:
            comm.compute(5.0)
            comm.send(x, 1)

    assert simulate(late_sender, 2, FLAT)[1].time_s == pytest.approx((5 + ALPHA_S, 5 + ALPHA_S))


def test_a_message_that_is_ready_early_takes_a_gap() -> None:
    def fn(comm: Comm) -> None:
        x = torch.zeros(0)
        if comm.rank == 0:
            # Placed first, but not ready before 5 s: rank 2 gets its own message at 1 s all the same.
            comm.irecv(x, 1).wait()
            comm.irecv(x, 2).wait()
        else:
            comm.compute(5.0 if comm.rank == 1 else 0.0)
            comm.send(x, 0)

    cluster = Cluster(within=Wire(1.0, 1e9))
    assert simulate(fn, 3, cluster)[1].time_s[0] == pytest.approx(7.0)

    def posted(comm: Comm) -> None:
        x = torch.zeros(0)
        if comm.rank == 0:
            for work in [comm.irecv(x, 1), comm.irecv(x, 2)]:
                work.wait()
        else:
            comm.compute(5.0 if comm.rank == 1 else 0.0)
            comm.send(x, 0)

    assert simulate(posted, 3, cluster)[1].time_s == pytest.approx((6.0, 6.0, 1.0))


def test_two_ports_carry_two_messages_at_once() -> None:
    x = torch.zeros(1000)
    one_s = ALPHA_S + x.nbytes / RATE
    wide = Cluster(within=FLAT.within, ports_per_rank=2)
    assert time_s(lambda comm: ALL["naive"](comm, x), 3, FLAT) == pytest.approx(4 * one_s)

    def star(comm: Comm) -> None:
        if comm.rank:
            comm.recv(x.clone(), 0)
        else:
            for work in [comm.isend(x, other) for other in (1, 2)]:
                work.wait()

    assert time_s(star, 3, FLAT) == pytest.approx(2 * one_s)
    assert time_s(star, 3, wide) == pytest.approx(one_s)


def test_impossible_machines_are_refused() -> None:
    with pytest.raises(ValueError, match="ranks_per_node is 0: a cluster needs at least one"):
        Cluster(ranks_per_node=0)
    with pytest.raises(ValueError, match="ports_per_node is -1"):
        Cluster(ports_per_node=-1)
    with pytest.raises(ValueError, match="positive bytes_per_s, not 0 and 0"):
        Wire(0, 0)
    with pytest.raises(Exception, match="a rank cannot compute for -1 seconds"):
        simulate(lambda comm: comm.compute(-1), 1)
