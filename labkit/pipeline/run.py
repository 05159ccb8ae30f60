"""Orders on a clock: each rank runs its own list, one pass at a time, and waits for what a pass needs.

A pass begins as soon as its rank is free and what it needs has ended and arrived. What goes from one rank to another
takes `transfer`, during which both may compute; messages do not get into each other's way. There is no choice in this,
so a schedule has one timeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from labkit.pipeline.actions import Action, Costs, in_words, needs
from labkit.pipeline.rules import (
    Orders,
    ScheduleError,
    check_complete,
    check_form,
    check_memory,
    live_counts,
)


@dataclass(frozen=True)
class Event:
    """A pass, where and when it ran.

    Event(Action("F", 0, 0), rank=0, start=0.0, end=1.0)
    """

    action: Action
    rank: int
    start: float
    end: float


@dataclass(frozen=True)
class ScheduleRun:
    """What ran when. events: by start; the passes of a rank in its order.

    n_transfers: messages between ranks. n_activations: by rank, after each of its passes.
    """

    events: tuple[Event, ...]
    n_ranks: int
    n_transfers: int

    @cached_property
    def makespan(self) -> float:
        """When the last pass has ended."""
        return max((event.end for event in self.events), default=0.0)

    @cached_property
    def by_rank(self) -> tuple[tuple[Event, ...], ...]:
        """The events of each rank, in order."""
        return tuple(tuple(one for one in self.events if one.rank == rank) for rank in range(self.n_ranks))

    @cached_property
    def busy(self) -> tuple[float, ...]:
        """By rank, the time in which it computes."""
        return tuple(sum(event.end - event.start for event in events) for events in self.by_rank)

    @property
    def idle(self) -> tuple[float, ...]:
        """By rank, the rest of the makespan."""
        return tuple(self.makespan - busy for busy in self.busy)

    @property
    def bubble(self) -> float:
        """All idle time as a share of the whole, ranks times makespan: (p-1)/(m+p-1) for GPipe."""
        whole = self.n_ranks * self.makespan
        return sum(self.idle) / whole if whole else 0.0

    @property
    def bubble_of_ideal(self) -> float:
        """All idle time as a share of the time in which ranks compute: (p-1)/m for GPipe."""
        busy = sum(self.busy)
        return sum(self.idle) / busy if busy else 0.0

    def live(self, rank: int) -> list[tuple[float, int]]:
        """(time, activations held from then on) of a rank: one more from the start of a forward pass, one less from the
        end of a backward pass on."""
        steps = [(0.0, 0)]
        events = self.by_rank[rank]
        for event, count in zip(events, live_counts([one.action for one in events]), strict=True):
            if count != steps[-1][1]:
                steps.append((event.start if event.action.kind == "F" else event.end, count))
        return steps

    @cached_property
    def peak_live(self) -> tuple[int, ...]:
        """By rank, the most activations that it holds at once."""
        return tuple(max(count for _, count in self.live(rank)) for rank in range(self.n_ranks))

    def event_of(self, action: Action) -> Event:
        """When it ran. Raises KeyError."""
        return self._events[action]

    @cached_property
    def _events(self) -> dict[Action, Event]:
        return {event.action: event for event in self.events}


def run_schedule(
    orders: Orders,
    costs: Costs,
    transfer: float = 0.0,
    memory_cap: int | Sequence[int] | None = None,
    n_microbatches: int | None = None,
    complete: bool = True,
) -> ScheduleRun:
    """Play orders[rank], the passes of each rank in its order. Raises ScheduleError where they cannot run.

    memory_cap: how many activations a rank may hold at once, one number for all or one for each.
    n_microbatches: as many as are named, unless it is said; complete: whether every stage has to run all of them. With
    False, this is the beginning of a schedule, and it has to run as far as it goes.
    """
    orders = [list(order) for order in orders]
    if n_microbatches is None:
        n_microbatches = 1 + max((action.microbatch for order in orders for action in order), default=-1)
    check_form(orders, costs.n_stages, n_microbatches)
    if complete:
        check_complete(orders, costs.n_stages, n_microbatches)
    events = _play(orders, costs, transfer)
    if memory_cap is not None:
        check_memory(orders, [memory_cap] * len(orders) if isinstance(memory_cap, int) else memory_cap)
    home = {action.stage: rank for rank, order in enumerate(orders) for action in order}
    n_transfers = sum(
        home[action.stage] != home[one.stage]
        for order in orders
        for action in order
        for group in needs(action, costs.n_stages)
        for one in group[:1]
        if one.stage in home
    )
    return ScheduleRun(tuple(events), len(orders), n_transfers)


def _play(orders: Sequence[Sequence[Action]], costs: Costs, transfer: float) -> list[Event]:
    """Ranks take turns: each goes on until a pass needs what has not been played."""
    played: dict[Action, Event] = {}
    at, free = [0] * len(orders), [0.0] * len(orders)
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while at[rank] < len(order):
                action = order[at[rank]]
                begins = _ready(action, rank, played, costs.n_stages, transfer)
                if begins is None:
                    break
                begins = max(begins, free[rank])
                free[rank] = begins + costs.time_of(action)
                played[action] = Event(action, rank, begins, free[rank])
                at[rank] += 1
                moved = True
    if any(place < len(order) for place, order in zip(at, orders, strict=True)):
        error = _stuck(orders, at, played, costs.n_stages)
        error.so_far = tuple(_by_start(played))
        error.stuck = {rank: order[at[rank]] for rank, order in enumerate(orders) if at[rank] < len(order)}
        raise error
    return _by_start(played)


def _by_start(played: dict[Action, Event]) -> list[Event]:
    return sorted(played.values(), key=lambda event: (event.start, event.end, event.rank))


def _ready(action: Action, rank: int, played: dict[Action, Event], n_stages: int, transfer: float) -> float | None:
    """When all that it needs has arrived; None as long as that has not been played."""
    begins = 0.0
    for group in needs(action, n_stages):
        ended = [played[one] for one in group if one in played]
        if not ended:
            return None
        begins = max(begins, ended[0].end + (transfer if ended[0].rank != rank else 0.0))
    return begins


def _stuck(
    orders: Sequence[Sequence[Action]], at: Sequence[int], played: dict[Action, Event], n_stages: int
) -> ScheduleError:
    """Why nobody goes on: a pass that its rank or nobody runs in time, else ranks that wait for one another."""
    listed = {action: rank for rank, order in enumerate(orders) for action in order}
    waits: list[tuple[int, Action, Action]] = []
    for rank, order in enumerate(orders):
        if at[rank] == len(order):
            continue
        action = order[at[rank]]
        groups = [group for group in needs(action, n_stages) if not any(one in played for one in group)]
        # Of a backward pass or its first half, the one that somebody lists.
        lacks = next((one for one in groups[0] if one in listed), groups[0][0])
        waits.append((rank, action, lacks))
        if lacks not in listed:
            text = f"rank {rank}: {in_words(action)} needs {in_words(lacks)}, which nobody has listed"
            return ScheduleError("missing", text, rank, action, lacks)
        if listed[lacks] == rank:
            text = f"rank {rank}: {in_words(action)} needs {in_words(lacks)}, which comes later on the same rank"
            return ScheduleError("order", text, rank, action, lacks)
    blocked = "; ".join(f"rank {rank} is at {action} and waits for {lacks}" for rank, action, lacks in waits)
    return ScheduleError("deadlock", f"no rank can go on: {blocked}", *waits[0])
