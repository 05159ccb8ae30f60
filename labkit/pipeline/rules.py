"""Whether orders are a schedule at all, and what they keep alive: all that can be said without a clock.

Whether ranks wait for one another in a circle is found by running them, in `run`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from labkit.pipeline.actions import KINDS, Action, in_words

Trouble = Literal["form", "place", "twice", "both", "order", "missing", "memory", "deadlock"]


class ScheduleError(ValueError):
    """Orders that cannot run.

    kind: "form" (no such pass, stage or micro-batch), "place" (a stage on two ranks), "twice", "both" (a backward pass,
    whole and split), "order" (what it needs comes later on its own rank), "missing" (a pass that nobody runs), "memory"
    (more activations than the rank may hold), "deadlock" (ranks wait for one another).
    action: the pass that cannot run; lacks: what it waits for, where there is such a thing. so_far: what had run where
    ranks got stuck, `Event`s by start; stuck: by rank the pass that it is at then.
    """

    def __init__(
        self, kind: Trouble, text: str, rank: int = 0, action: Action | None = None, lacks: Action | None = None
    ) -> None:
        super().__init__(text)
        self.kind, self.rank, self.action, self.lacks = kind, rank, action, lacks
        self.so_far: tuple[Any, ...] = ()
        self.stuck: Mapping[int, Action] = {}


Orders = Sequence[Sequence[Action]]


def check_form(orders: Orders, n_stages: int, n_microbatches: int) -> None:
    """Raise unless every pass is one that there can be, stands once, and every stage is on one rank."""
    seen: dict[Action, int] = {}
    home: dict[int, int] = {}
    for rank, order in enumerate(orders):
        for action in order:
            where = f"rank {rank}: {in_words(action)}" if action.kind in KINDS else f"rank {rank}: {action}"
            if action.kind not in KINDS:
                raise ScheduleError("form", f"{where}: a pass is one of {', '.join(KINDS)}", rank, action)
            if not 0 <= action.stage < n_stages:
                raise ScheduleError("form", f"{where}: the stages are 0 to {n_stages - 1}", rank, action)
            if not 0 <= action.microbatch < n_microbatches:
                text = f"{where}: the micro-batches are 0 to {n_microbatches - 1}"
                raise ScheduleError("form", text, rank, action)
            if home.setdefault(action.stage, rank) != rank:
                text = f"{where}: this stage is on rank {home[action.stage]}"
                raise ScheduleError("place", text, rank, action)
            if action in seen:
                raise ScheduleError("twice", f"{where} comes twice", rank, action)
            seen[action] = rank
            for other in {"B": "IW", "I": "B", "W": "B"}.get(action.kind, ""):
                if Action(other, action.stage, action.microbatch) in seen:
                    text = f"{where} stands beside {in_words(Action(other, action.stage, action.microbatch))}"
                    raise ScheduleError("both", f"{text}: a backward pass is whole or split", rank, action)


def check_complete(orders: Orders, n_stages: int, n_microbatches: int) -> None:
    """Raise unless every stage runs every micro-batch forward and backward."""
    there = {action for order in orders for action in order}
    for stage in range(n_stages):
        for microbatch in range(n_microbatches):
            forward, whole, first, second = (Action(kind, stage, microbatch) for kind in KINDS)
            missing = None
            if forward not in there:
                missing = forward
            elif whole not in there and (first not in there or second not in there):
                # Of a backward pass of which no half is there, the whole is what is missing.
                missing = second if first in there else first if second in there else whole
            if missing:
                rank = next((r for r, order in enumerate(orders) if any(a.stage == stage for a in order)), 0)
                raise ScheduleError("missing", f"nobody runs {in_words(missing)}", rank, missing)


def live_counts(order: Sequence[Action]) -> list[int]:
    """After each pass of a rank, how many activations it holds: of each micro-batch and stage, from the beginning of
    its forward pass to the end of its backward pass (of the second half, where that is split).

        live_counts([Action("F", 0, 0), Action("F", 0, 1), Action("B", 0, 0)]) == [1, 2, 1]
    """
    counts, now = [], 0
    for action in order:
        now += {"F": 1, "B": -1, "I": 0, "W": -1}[action.kind]
        counts.append(now)
    return counts


def check_memory(orders: Orders, caps: Sequence[int]) -> None:
    """Raise where a rank would hold more activations than it may."""
    for rank, (order, cap) in enumerate(zip(orders, caps, strict=True)):
        for action, live in zip(order, live_counts(order), strict=True):
            if live > cap:
                text = f"rank {rank} holds {live} activations with {in_words(action)}, and it has room for {cap}"
                raise ScheduleError("memory", text, rank, action)
