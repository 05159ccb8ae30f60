"""The time of a step: a published run, each term by itself, and which links a group uses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labkit.plan import LLAMA_8B, MEGATRON_1T, MIXTRAL, SELENE, Links, Plan, leonardo, step_time

THEIRS = Plan(tensor=8, pipeline=64, data=6, recompute="full")


def test_the_largest_published_run_takes_as_long_as_was_measured() -> None:
    """Narayanan and others: F = 96 B s l h^2 (1 + s / 6 h + V / 16 l h) FLOPs, at 163 TFLOP/s a GPU."""
    batch, s, n_layers, h, vocab = 3072, 2048, 128, 25600, 51200
    flops = 96 * batch * s * n_layers * h**2 * (1 + s / (6 * h) + vocab / (16 * n_layers * h))
    measured_s = flops / (3072 * 163e12)
    assert step_time(MEGATRON_1T, SELENE, THEIRS).total == pytest.approx(measured_s, rel=0.05)


def test_compute_is_six_flops_a_parameter_and_token_beside_attention() -> None:
    cluster, plan = leonardo(4), Plan(data=16)
    tokens = LLAMA_8B.seq_len * LLAMA_8B.global_batch
    looked_up = LLAMA_8B.embedding_params
    matrices = 6 * (LLAMA_8B.n_params - looked_up) * tokens
    attention = 6 * LLAMA_8B.n_layers * LLAMA_8B.seq_len * LLAMA_8B.hidden * tokens
    seconds = (matrices + attention) / (16 * cluster.flops_per_s)
    assert step_time(LLAMA_8B, cluster, plan).compute == pytest.approx(seconds)


def test_the_bubble_is_the_share_of_the_other_terms_that_the_textbook_says() -> None:
    taken = step_time(MEGATRON_1T, SELENE, THEIRS)
    others = taken.total - taken.bubble - taken.data
    assert taken.bubble == pytest.approx(others * 63 / 512)


@pytest.mark.parametrize(("recompute", "all_reduces"), [("none", 4), ("selective", 4), ("full", 6)])
def test_tensor_parallelism_reduces_twice_a_layer_and_pass(recompute: str, all_reduces: int) -> None:
    plan, cluster = Plan(tensor=4, data=4, recompute=recompute), leonardo(4)
    each = 2 * 3 / 4 * (8192 * 4096 * 2) / cluster.node_bytes_per_s
    expected = plan.n_microbatches(LLAMA_8B) * 32 * all_reduces * each
    assert step_time(LLAMA_8B, cluster, plan).tensor == pytest.approx(expected)


def test_sharding_moves_more_only_where_it_has_to_for_every_micro_batch() -> None:
    """On links so slow that nothing is hidden."""
    slow = replace(leonardo(4), network_bytes_per_s=1e3)
    plan = Plan(data=16, micro_batch=4)
    m = plan.n_microbatches(LLAMA_8B)
    seconds = [step_time(LLAMA_8B, slow, replace(plan, sharding=level)).data for level in range(4)]
    assert seconds[0] == seconds[1]
    assert seconds[2] / seconds[0] == pytest.approx((m + 1) / 2, rel=1e-3)
    assert seconds[3] / seconds[0] == pytest.approx(3 * m / 2, rel=1e-3)


def test_a_ring_of_long_blocks_is_hidden_and_one_of_short_blocks_is_not() -> None:
    long = replace(LLAMA_8B, seq_len=131072, global_batch=32)
    short = replace(LLAMA_8B, seq_len=2048, global_batch=64)
    plan = Plan(context=16, recompute="selective")
    assert step_time(long, leonardo(4), plan).context == 0
    assert step_time(short, leonardo(4), plan).context > 1.0


def test_experts_in_one_place_send_nothing() -> None:
    cluster = leonardo(8)
    assert step_time(MIXTRAL, cluster, Plan(data=32)).experts == 0
    in_node, beyond = (step_time(MIXTRAL, cluster, Plan(data=32, expert=e)).experts for e in (4, 8))
    assert beyond > 5 * in_node > 0


def test_a_group_uses_the_network_where_it_leaves_its_node() -> None:
    """Leonardo: 4 devices a node, 200 GB/s inside, 25 GB/s a node to the others."""
    cluster = leonardo(4)
    assert Links(cluster, 1, 4).ring_bytes_per_s == 200e9
    assert Links(cluster, 1, 8).ring_bytes_per_s == 25e9  # one ring in each node has the network to itself
    assert Links(cluster, 2, 8).ring_bytes_per_s == 12.5e9  # two ranks of each of two rings
    assert Links(cluster, 4, 4).ring_bytes_per_s == 6.25e9  # four rings
    assert Links(cluster, 4, 1).ring_s(1e9) == 0
    assert Links(cluster, 4, 1).exchange_s(1e9) == 0
    # Of 8 GB, a quarter goes to each rank. Inside: 1 of 4 others; outside: 2 of 4, at a quarter of 25 GB/s.
    assert Links(cluster, 2, 4).exchange_s(8e9) == pytest.approx(2e9 / 200e9 + 4e9 / 6.25e9)
