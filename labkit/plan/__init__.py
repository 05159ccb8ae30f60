"""Plans for training on many devices: what may be chosen, which rules a plan breaks, and how long a step takes.

How many bytes a device holds under a plan is lab 19's exercise, and no part of this room.
"""

from labkit.plan.links import Links
from labkit.plan.models import (
    LLAMA_8B,
    LLAMA_8B_LONG,
    LLAMA_8B_SMALL_BATCH,
    LLAMA_70B,
    MEGATRON_1T,
    MIXTRAL,
    P4D,
    SELENE,
    SIXTEEN_EXPERTS,
    leonardo,
)
from labkit.plan.rules import broken_rules, divisors
from labkit.plan.things import RECOMPUTATIONS, Cluster, Model, Plan
from labkit.plan.time import StepTime, step_time

__all__ = [
    "LLAMA_8B",
    "LLAMA_8B_LONG",
    "LLAMA_8B_SMALL_BATCH",
    "LLAMA_70B",
    "MEGATRON_1T",
    "MIXTRAL",
    "P4D",
    "RECOMPUTATIONS",
    "SELENE",
    "SIXTEEN_EXPERTS",
    "Cluster",
    "Links",
    "Model",
    "Plan",
    "StepTime",
    "broken_rules",
    "divisors",
    "leonardo",
    "step_time",
]
