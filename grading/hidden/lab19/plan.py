"""Lab 19: hidden models and clusters to plan for, and hidden plans of them."""

from __future__ import annotations

import random
from dataclasses import replace

from grading.hidden import Hidden
from labkit.exercises.lab19.plan import Planned, planned
from labkit.oracles.lab19.plan_search import all_plans
from labkit.plan import Cluster, Model, leonardo

SIZES = ((24, 2048, 16, 4), (32, 4096, 32, 8), (48, 6144, 48, 8), (64, 8192, 64, 8))
"""Layers, width, heads, heads of keys and values."""
N_PLANS = 3
"""Of all plans, beside those that tell the levels of ZeRO and the experts apart."""


def dense(rng: random.Random) -> Model:
    """1 to 56 billion parameters, with a gate or without, and a small batch."""
    n_layers, hidden, n_heads, n_kv_heads = rng.choice(SIZES)
    gated = rng.random() < 0.5
    mlp_hidden, matrices = (7 * hidden // 2, 3) if gated else (4 * hidden, 2)
    return Model(
        "a dense model", n_layers, hidden, n_heads, n_kv_heads, mlp_hidden, rng.choice((32000, 65536, 128000)),
        2048, rng.choice((48, 96)), matrices,
    )  # fmt: skip


def of_experts(rng: random.Random) -> Model:
    """8 or 16 experts in each layer."""
    n_layers, hidden, n_heads, n_kv_heads = rng.choice(SIZES[:2])
    return Model(
        "a mixture of experts", n_layers, hidden, n_heads, n_kv_heads, 2 * hidden, 65536, 4096, 384, 3,
        rng.choice((8, 16)), rng.choice((1, 2)),
    )  # fmt: skip


def some_cluster(rng: random.Random) -> Cluster:
    """16 to 64 devices."""
    if rng.random() < 0.5:
        return leonardo(rng.choice((8, 12, 16)))
    network = rng.choice((50e9, 100e9, 400e9))
    return Cluster("a cluster", rng.choice((4, 6, 8)), 8, rng.choice((40.0, 80.0)), 300e12, 400e9, network)


def some_case(rng: random.Random, model: Model, cluster: Cluster) -> Planned:
    """With plans of all kinds, whether they fit or not: one of each level of ZeRO that cuts among d and among c, and of
    experts two that deal them out and shard them."""
    plans = list(all_plans(model, cluster))
    of_levels = [
        rng.choice([plan for plan in plans if plan.sharding == level and plan.data > 1 and plan.context > 1])
        for level in (1, 2, 3)
    ]
    dealt = [plan for plan in plans if plan.expert > 1 and plan.sharding > 1]
    others = rng.sample(plans, N_PLANS)
    return planned(model, cluster, *of_levels, *others, *rng.sample(dealt, min(2, len(dealt))))


def plan_cases(rng: random.Random) -> tuple[Planned, ...]:
    """A dense model, long texts, and experts."""
    small = replace(dense(rng), n_layers=24, hidden=4096, n_heads=32, n_kv_heads=8, mlp_hidden=14336)
    long = replace(small, name="long texts", seq_len=rng.choice((32768, 65536)), global_batch=48)
    return (
        some_case(rng, dense(rng), leonardo(16)),
        some_case(rng, long, some_cluster(rng)),
        some_case(rng, of_experts(rng), some_cluster(rng)),
    )


PLAN = Hidden("19-plan", plan_cases)
