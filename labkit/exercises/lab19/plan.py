"""Lab 19: what is asked, given and run for planning how a model is cut up over a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import torch

from labkit.plan import (
    LLAMA_8B,
    LLAMA_8B_LONG,
    LLAMA_8B_SMALL_BATCH,
    LLAMA_70B,
    MEGATRON_1T,
    MIXTRAL,
    P4D,
    SELENE,
    SIXTEEN_EXPERTS,
    Cluster,
    Model,
    Plan,
    leonardo,
)
from labkit.spec import Answer, Case, Exercise, Run

Numbers = tuple[Any, ...]


@dataclass(frozen=True)
class Planned(Case):
    """The fields of a model, of a cluster, and of plans whose memory is asked for."""

    model: Numbers
    cluster: Numbers
    plans: tuple[Numbers, ...]

    @property
    def the_model(self) -> Model:
        return Model(*self.model)

    @property
    def the_cluster(self) -> Cluster:
        return Cluster(*self.cluster)

    @property
    def the_plans(self) -> tuple[Plan, ...]:
        return tuple(Plan(*fields) for fields in self.plans)


def planned(model: Model, cluster: Cluster, *plans: Plan) -> Planned:
    """The case as plain data."""
    return Planned(astuple(model), astuple(cluster), tuple(astuple(plan) for plan in plans))


def no_inputs(case: Planned, gen: torch.Generator) -> dict[str, Any]:
    """The case says it all."""
    return {}


def as_numbers(held: object) -> object:
    """What device_bytes returned, its numbers as floats; the name of its type where it is no dict."""
    if not isinstance(held, Mapping):
        return f"a {type(held).__name__}, where a dict is asked for"
    return {str(name): float(n_bytes) for name, n_bytes in held.items()}


def as_fields(plan: object) -> object:
    """What choose returned, as a dict; the name of its type where it is no plan."""
    return dict(vars(plan)) if isinstance(plan, Plan) else f"a {type(plan).__name__}"


def drive_plan(ans, case: Planned, tree: dict, stage) -> dict[str, Any]:
    """held: by plan, what device_bytes returns; plan: what choose does, None while it is a blank."""
    held = [as_numbers(ans.device_bytes(case.the_model, plan)) for plan in case.the_plans]
    try:
        plan = as_fields(ans.choose(case.the_model, case.the_cluster))
    except NotImplementedError:
        plan = None
    return {"held": held, "plan": plan}


PLAN = Exercise(
    id="19-plan",
    title="Plan a training run",
    points=5,
    minutes=60,
    difficulty=3,
    answers=(Answer("device_bytes"), Answer("choose")),
    public=(
        planned(
            LLAMA_8B,
            leonardo(4),
            Plan(data=16),
            Plan(tensor=4, pipeline=2, data=2, micro_batch=4, sharding=1, recompute="selective"),
            Plan(tensor=2, data=4, context=2, micro_batch=2, sharding=3, recompute="full"),
            Plan(pipeline=16, micro_batch=64, recompute="selective"),
        ),
        planned(
            LLAMA_8B_LONG,
            leonardo(16),
            Plan(tensor=4, context=16, sharding=1, recompute="selective"),
            Plan(pipeline=4, context=8, data=2, sharding=2, recompute="full"),
        ),
        planned(
            LLAMA_8B_SMALL_BATCH,
            leonardo(16),
            Plan(pipeline=8, data=8, micro_batch=2),
            Plan(tensor=4, pipeline=2, data=8, sharding=2, recompute="full"),
        ),
        planned(
            LLAMA_70B,
            leonardo(32),
            Plan(tensor=4, pipeline=4, data=8, sharding=2, micro_batch=2, recompute="none"),
            Plan(tensor=2, data=32, context=2, sharding=3, recompute="full"),
        ),
        planned(
            MIXTRAL,
            leonardo(8),
            Plan(tensor=2, pipeline=2, data=8, expert=4, sharding=1, recompute="selective"),
            Plan(data=16, context=2, expert=8, sharding=3, recompute="full"),
            Plan(pipeline=4, data=8, expert=2, micro_batch=2),
        ),
        # No plan is fast enough with e = 1, nor with one text in a micro-batch, nor with another level than ZeRO-2.
        planned(
            SIXTEEN_EXPERTS,
            P4D,
            Plan(data=16, expert=8, micro_batch=8, sharding=2, recompute="selective"),
            Plan(tensor=2, pipeline=4, data=2, expert=2, micro_batch=4, recompute="full"),
        ),
        planned(
            MEGATRON_1T,
            SELENE,
            Plan(tensor=8, pipeline=64, data=6, recompute="full"),
            Plan(tensor=4, pipeline=32, data=12, context=2, sharding=1, recompute="selective"),
        ),
    ),
    inputs=no_inputs,
    run=Run(wall_s=60.0),
    drive=drive_plan,
)
