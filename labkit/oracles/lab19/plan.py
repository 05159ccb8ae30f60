"""Lab 19: what is true of a plan: labkit counts what a device holds, and tries every plan to find the fastest."""

from __future__ import annotations

from typing import Any

from labkit.exercises.lab19.plan import Planned
from labkit.oracles.hints import not_written_yet
from labkit.oracles.lab19.plan_choices import CHOICE_HINTS, plan_is_good
from labkit.oracles.lab19.plan_counts import BOTH_OF_ALL_LAYERS, CLOSE, MEMORY_HINTS, close, is_held_right, made
from labkit.oracles.lab19.plan_memory import CATEGORIES, RIGHT
from labkit.plan import Plan
from labkit.spec import CaseRun, Observation, Oracle, Tolerance


def expect(run: CaseRun[Planned]) -> dict[str, Any]:
    """What a device holds; the plan is judged by a property."""
    return {"held": made(run, RIGHT), "plan": run.got["plan"]}


def is_next(run: CaseRun[Planned], name: str) -> bool:
    return name == "choose" and run.got["plan"] is None and is_held_right(run)


def category_off(run: CaseRun[Planned]) -> str | None:
    """The first category and plan where device_bytes is off, and by which factor."""
    for plan, got, right in zip(run.case.the_plans, run.got["held"], made(run, RIGHT), strict=True):
        for name in CATEGORIES:
            if not close(got[name], right[name]):
                return (
                    f"with {plan}, {name}: {got[name] / 1e9:.3f} GB, {got[name] / right[name]:.4g} times the right "
                    f"number"
                )
    return None


def in_words(run: Observation) -> str:
    case = run.case
    plans = "; ".join(f"plans[{at}]: {briefly(plan)}" for at, plan in enumerate(case.the_plans))
    return f"device_bytes and choose for {case.the_model.name} on {case.the_cluster.name}; {plans}"


def briefly(plan: Plan) -> str:
    """What is not 1, 0 or "none" in a plan: "t 4, d 2, ZeRO-1, full"."""
    sizes = {
        "t": plan.tensor,
        "p": plan.pipeline,
        "d": plan.data,
        "c": plan.context,
        "e": plan.expert,
        "micro-batch": plan.micro_batch,
    }
    parts = [f"{name} {size}" for name, size in sizes.items() if size > 1]
    parts += [f"ZeRO-{plan.sharding}"] * (plan.sharding > 0) + [plan.recompute] * (plan.recompute != "none")
    return ", ".join(parts) or "one device"


MOST_PLANS = 8
PLACES = {
    f"held.{at}.{name}": f"{name} of device_bytes(model, plans[{at}])"
    for at in range(MOST_PLANS)
    for name in CATEGORIES
}


PLAN = Oracle(
    id="19-plan",
    call=in_words,
    places={"held": "device_bytes", "plan": "choose", **PLACES},
    expect=expect,
    tolerance=lambda run: {"held": Tolerance(rtol=CLOSE)},
    judge=(plan_is_good,),
    fact=category_off,
    axis="other models, clusters and plans",
    errors={
        "division by zero": "If this came from step_time: it takes plans that break no rule. Ask broken_rules first.",
    },
    diagnose=(
        *not_written_yet(("choose",), is_next, right="in all cases"),
        BOTH_OF_ALL_LAYERS,
        MEMORY_HINTS,
        *CHOICE_HINTS,
    ),
)
