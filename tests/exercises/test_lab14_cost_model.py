"""Lab 14: stored times and message programs against the course's own algorithms, and what is claimed of nodes."""

from __future__ import annotations

import random

import pytest
import torch

from grading.hidden.lab14.cost_model import cost_model_cases, time_s
from grading.hidden.lab14.hierarchical import hierarchical_cases
from labkit.exercises.lab14.cost_model import ALGORITHMS, COST_MODEL, Links
from labkit.exercises.lab14.hierarchical import Dealt, filled, round_robin
from labkit.oracles.lab14.cost_model import expect
from labkit.ranks import Cluster, Wire, simulate
from labkit.spec import CaseRun
from tests.exercises.harness import answers_in, solution_of
from tests.ranks import algorithms


def program_s(name: str, case: Links) -> float:
    """The simulator's clock at the end of one of the course's algorithms."""
    tensor = torch.empty(case.n_bytes, dtype=torch.uint8, device="meta")
    cluster = Cluster(within=Wire(case.alpha_s, 1 / case.beta_s))
    return simulate(lambda comm: algorithms.ALL[name](comm, tensor), case.n, cluster)[1].seconds


@pytest.mark.parametrize("case", COST_MODEL.public, ids=str)
def test_the_stored_times_are_those_of_the_algorithms(case: Links) -> None:
    times_s = expect(CaseRun(case, {}))["times_s"]
    assert times_s == pytest.approx({name: program_s(name, case) for name in ALGORITHMS}, rel=1e-12)


@pytest.mark.parametrize("n", [*range(1, 10), 13, 16])
def test_messages_without_sums_take_as_long_as_the_algorithms(n: int) -> None:
    case = Links(n, 1000 * n, 10e-6, 0.3e-9)
    for name in ALGORITHMS:
        assert time_s(name, case) == pytest.approx(program_s(name, case), rel=1e-12), name


def test_no_hidden_case_is_a_close_call() -> None:
    model = answers_in("14-cost-model", solution_of("14-cost-model"))["all_reduce_time"]
    winners = set()
    for seed in range(50):
        for case in cost_model_cases(random.Random(seed)):
            assert case.n_bytes % case.n == 0
            if case.n > 1:
                times = {name: model(name, case.n, case.n_bytes, case.alpha_s, case.beta_s) for name in ALGORITHMS}
                best, second = sorted(times.values())[:2]
                assert second > 1.01 * best, case
                winners.add(min(times, key=times.__getitem__))
    assert winners == {"butterfly", "ring"}


def test_the_last_rank_of_every_deal_is_on_the_last_node() -> None:
    for seed in range(50):
        for case in hierarchical_cases(random.Random(seed)):
            assert Dealt(nodes=case.nodes).node_of(case.n_ranks - 1) == len(case.nodes) - 1
            assert sorted(sum(case.nodes, ())) == list(range(case.n_ranks))
            assert len(set(map(len, case.nodes))) == 1


@pytest.mark.parametrize(("n_nodes", "per_node"), [(2, 2), (4, 4), (3, 2)])
def test_what_leaves_a_node(n_nodes: int, per_node: int) -> None:
    """2(N-1)/N S and 2(N-1) rounds; a flat ring sends as many times more round-robin as there are ranks on a node."""
    n = n_nodes * per_node
    x = torch.ones(4 * n)
    hierarchical = answers_in("14-hierarchical", solution_of("14-hierarchical"))["hierarchical_all_reduce"]
    left = {}
    for nodes in (filled(n_nodes, per_node), round_robin(n_nodes, per_node)):
        cluster = Dealt(nodes=nodes)
        left[nodes] = max(simulate(lambda comm: algorithms.ring(comm, x), n, cluster)[1].bytes_across)
        lists = [list(ranks) for ranks in nodes]
        _, traffic = simulate(lambda comm, lists=lists: hierarchical(comm, x, lists), n, cluster)
        assert set(traffic.bytes_across) == {2 * (n_nodes - 1) * x.nbytes // n_nodes}
        assert traffic.rounds_across == 2 * (n_nodes - 1)
    in_order, dealt = left.values()
    assert in_order == 2 * (n - 1) * x.nbytes // n
    assert dealt == per_node * in_order
