"""Every plan of a model on a cluster with its memory and time, and the fastest that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import gcd

from labkit.oracles.lab19.plan_memory import device_bytes
from labkit.plan import RECOMPUTATIONS, Cluster, Model, Plan, StepTime, broken_rules, divisors, step_time


@dataclass(frozen=True)
class Estimate:
    """What labkit thinks of a plan that breaks no rule."""

    plan: Plan
    held: dict[str, float]
    time: StepTime

    @cached_property
    def n_bytes(self) -> float:
        return sum(self.held.values())

    @cached_property
    def seconds(self) -> float:
        return self.time.total


def estimate(model: Model, cluster: Cluster, plan: Plan) -> Estimate:
    """Of a plan that breaks no rule."""
    return Estimate(plan, device_bytes(model, plan), step_time(model, cluster, plan))


def all_plans(model: Model, cluster: Cluster) -> Iterator[Plan]:
    """All that break no rule."""
    n = cluster.n_devices
    for t in divisors(gcd(cluster.devices_per_node, model.n_kv_heads, n)):
        for p in divisors(gcd(model.n_layers, n // t)):
            for c in divisors(n // (t * p)):
                d = n // (t * p * c)
                if model.global_batch % d or model.seq_len % (2 * c * t):
                    continue
                for e in divisors(gcd(model.n_experts, d)):
                    for micro_batch in divisors(model.global_batch // d):
                        for sharding in range(4):
                            for recompute in RECOMPUTATIONS:
                                yield Plan(t, p, d, c, e, micro_batch, sharding, recompute)


def all_that_fit(model: Model, cluster: Cluster) -> Iterator[Estimate]:
    """Of all plans that break no rule, those that a device has room for."""
    for plan in all_plans(model, cluster):
        if sum(device_bytes(model, plan).values()) <= cluster.memory_bytes:
            yield estimate(model, cluster, plan)


@lru_cache(maxsize=64)
def fastest_by_value(model: Model, cluster: Cluster) -> dict[tuple[str, object], Estimate]:
    """(field of a plan, value) -> the plan with this value that fits and takes the least time."""
    best: dict[tuple[str, object], Estimate] = {}
    for found in all_that_fit(model, cluster):
        for at in vars(found.plan).items():
            if at not in best or found.seconds < best[at].seconds:
                best[at] = found
    return best


def fastest(model: Model, cluster: Cluster) -> Estimate | None:
    """The plan that fits and takes the least time; None where none fits."""
    return min(fastest_by_value(model, cluster).values(), key=lambda one: one.seconds, default=None)


@lru_cache(maxsize=64)
def seconds_where_each_fits(model: Model, cluster: Cluster) -> float:
    """The least time of all plans for which every category of memory fits by itself, as if it were alone."""
    return min(
        step_time(model, cluster, plan).total
        for plan in all_plans(model, cluster)
        if max(device_bytes(model, plan).values()) <= cluster.memory_bytes
    )


def neighbours(plan: Plan, model: Model, cluster: Cluster, knob: str) -> Iterator[Plan]:
    """The plan with another value of one knob: "micro_batch", "sharding" or "recompute"; none that breaks a rule."""
    values = {
        "micro_batch": divisors(model.global_batch // plan.data),
        "sharding": range(4),
        "recompute": RECOMPUTATIONS,
    }[knob]
    for value in values:
        other = replace(plan, **{knob: value})
        if other != plan and not broken_rules(model, cluster, other):
            yield other
