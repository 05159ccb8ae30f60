"""Lab 18: how long each device of naive model parallelism has nothing to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise


@dataclass(frozen=True)
class Stages(Case):
    """Stage i takes forward_ms[i] and backward_ms[i]; a message between stages i and i+1 takes transfer_ms[i]."""

    forward_ms: tuple[float, ...]
    backward_ms: tuple[float, ...]
    transfer_ms: tuple[float, ...]


def no_inputs(case: Stages, gen: torch.Generator) -> dict[str, Any]:
    """The case says it all."""
    return {}


def number(value: Any) -> Any:
    """A share as a float, whatever kind of number it is; anything else as it is."""
    return float(value) if hasattr(value, "__float__") else value


def drive(ans, case: Stages, tree: dict, stage) -> dict[str, Any]:
    """shares: of each stage; speedup: over one device."""

    def times() -> tuple[list[float], ...]:
        return list(case.forward_ms), list(case.backward_ms), list(case.transfer_ms)

    shares = ans.idle_shares(*times())
    return {"shares": [number(share) for share in shares], "speedup": number(ans.speedup(*times()))}


NAIVE_IDLE = Exercise(
    id="18-naive-idle",
    title="One batch, and who waits",
    points=2,
    minutes=15,
    difficulty=1,
    answers=(Answer("idle_shares"), Answer("speedup")),
    public=(
        Stages((1.0,) * 4, (2.0,) * 4, (0.0,) * 3),
        Stages((4.0, 6.0, 3.0), (8.0, 14.0, 5.0), (1.5, 0.5)),
        Stages((5.0, 5.0), (10.0, 10.0), (3.0,)),
        Stages((2.0, 3.0, 9.0, 1.0, 4.0), (5.0, 4.0, 17.0, 3.0, 8.0), (0.5, 2.5, 1.0, 4.0)),
        Stages((7.0,), (11.0,), ()),
    ),
    inputs=no_inputs,
    drive=drive,
)
