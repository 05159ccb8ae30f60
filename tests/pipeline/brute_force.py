"""A pipeline played one tick at a time, with nothing clever in it: what `run_schedule` is compared with."""

from __future__ import annotations

from collections.abc import Sequence

from labkit.pipeline import Action


def tick_by_tick(
    orders: Sequence[Sequence[Action]], ticks_of: dict[tuple[str, int], int], n_stages: int, transfer: int
) -> dict[Action, tuple[int, int]] | None:
    """(start, end) of each pass, in whole ticks of at least 1; None where they never all end.

    At every tick each rank that does nothing looks whether its next pass can begin.
    """
    queues = [list(order) for order in orders]
    rank_of = {action.stage: rank for rank, order in enumerate(orders) for action in order}
    began: dict[Action, int] = {}
    ended: dict[Action, int] = {}
    busy_until = [0] * len(orders)
    longest = sum(ticks_of[action.kind, action.stage] + transfer for order in orders for action in order)

    def has_arrived(kinds: str, stage: int, microbatch: int, rank: int, now: int) -> bool:
        for kind in kinds:
            one = Action(kind, stage, microbatch)
            if one in ended and ended[one] + (transfer if rank_of[stage] != rank else 0) <= now:
                return True
        return False

    def can_begin(action: Action, rank: int, now: int) -> bool:
        stage, microbatch = action.stage, action.microbatch
        if action.kind == "F":
            return stage == 0 or has_arrived("F", stage - 1, microbatch, rank, now)
        if action.kind == "W":
            return has_arrived("I", stage, microbatch, rank, now)
        above = stage == n_stages - 1 or has_arrived("BI", stage + 1, microbatch, rank, now)
        return above and has_arrived("F", stage, microbatch, rank, now)

    for now in range(longest + 1):
        for rank, queue in enumerate(queues):
            if queue and busy_until[rank] <= now and can_begin(queue[0], rank, now):
                action = queue.pop(0)
                began[action] = now
                ended[action] = busy_until[rank] = now + ticks_of[action.kind, action.stage]
    return None if any(queues) else {action: (began[action], ended[action]) for action in began}
