"""Lab 19: every plan as a point of memory and time, and in which colour it is drawn.

How many bytes a device holds is the exercise's, and comes from its oracle, which a submission's process does not have:
it is imported where it is asked for, and nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from labkit.plan import (
    Cluster,
    Model,
    Plan,
    broken_rules,
    step_time,
)

MOST_BYTES, MOST_SECONDS = 10, 8
"""So many times the memory of a device, and the time of the fastest plan that fits: what lies beyond is not drawn."""
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7a7a00", "#5f6b7a")
FITS, FULL, RULE, YOURS = "#0072B2", "#c62828", "#8a949e", "#000000"
WHAT_BREAKS = "what breaks"
COLOURED_BY: dict[str, Callable[[Plan], object]] = {
    "recomputation": lambda plan: plan.recompute,
    "ZeRO level": lambda plan: plan.sharding,
    "t": lambda plan: plan.tensor,
    "p": lambda plan: plan.pipeline,
    "c": lambda plan: plan.context,
    "e": lambda plan: plan.expert,
    "micro-batch": lambda plan: plan.micro_batch,
}


@dataclass(frozen=True)
class Point:
    """A plan as it is drawn.

    Point(Plan(data=16), 130e9, 80.0, "does not fit", FULL)
    """

    plan: Plan
    n_bytes: float
    seconds: float
    verdict: str
    colour: str

    @property
    def fits(self) -> bool:
        return self.verdict == "fits"

    @property
    def text(self) -> str:
        return f"{self.plan}\n{self.seconds:.3g} s a step, {self.n_bytes / 1e9:.1f} GB a device: {self.verdict}"


# Points ---------------------------------------------------------------------------------------------------------------


def unknown(model: Model, cluster: Cluster, plan: Plan) -> bool:
    """Whether it breaks a rule without which there is nothing to estimate."""
    return bool(broken_rules(model, cluster, plan).keys() - {"node"})


def point_of(model: Model, cluster: Cluster, plan: Plan) -> Point:
    from labkit.oracles.lab19.plan_memory import device_bytes, in_gb

    held = device_bytes(model, plan)
    n_bytes, seconds = sum(held.values()), step_time(model, cluster, plan).total
    if rules := broken_rules(model, cluster, plan):
        verdict, colour = "; ".join(rules.values()), RULE
    elif n_bytes > cluster.memory_bytes:
        verdict, colour = f"does not fit: {in_gb(held, cluster.memory_gb)}", FULL
    else:
        verdict, colour = "fits", FITS
    return Point(plan, n_bytes, seconds, verdict, colour)


def points_of(model: Model, cluster: Cluster) -> list[Point]:
    from labkit.oracles.lab19.plan_search import all_plans

    plans = list(all_plans(model, cluster))
    # One rule can be broken and still leave a plan that could run: tensor groups may reach beyond a node.
    most = max(plan.tensor for plan in plans)
    beyond = (replace(plan, tensor=2 * most, data=plan.data // 2) for plan in plans if plan.tensor == most)
    plans += [plan for plan in beyond if broken_rules(model, cluster, plan).keys() == {"node"}]
    return [point_of(model, cluster, plan) for plan in plans]


def near(points: Sequence[Point], cluster: Cluster) -> list[Point]:
    """Those that are not far from the corner where plans fit and are fast; all of them where none fits."""
    within = [point.seconds for point in points if point.n_bytes <= cluster.memory_bytes]
    if not within:
        return list(points)
    most_bytes, most_seconds = MOST_BYTES * cluster.memory_bytes, MOST_SECONDS * min(within)
    return [point for point in points if point.n_bytes <= most_bytes and point.seconds <= most_seconds]


def by_knob(points: Sequence[Point], knob: str) -> tuple[list[Point], dict[str, str]]:
    """The points in a colour for each value of a knob, those that break a rule left out."""
    kept = [point for point in points if point.colour != RULE]
    values = [value for value, _ in Counter(COLOURED_BY[knob](point.plan) for point in kept).most_common()]
    values = sorted(values, key=lambda value: value if isinstance(value, int) else -len(str(value)))
    colours = {value: PALETTE[min(at, len(PALETTE) - 1)] for at, value in enumerate(values)}
    legend: dict[str, str] = {}
    for value, colour in colours.items():
        legend[colour] = f"{legend[colour].split(' and')[0]} and above" if colour in legend else f"{knob} {value}"
    return [replace(point, colour=colours[COLOURED_BY[knob](point.plan)]) for point in kept], legend
