"""What is on its way between ranks: messages on a link, collectives to which not all have come, the chain behind each.

Who may send, and what it costs, is the network's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from labkit.ranks.collectives import Group, Offer, of_group
from labkit.ranks.errors import CommError

Depth = tuple[int, int]
"""The longest chain of messages up to a point: all of them, and those of it that leave their node."""


@dataclass
class Message:
    tensor: torch.Tensor | None
    n_bytes: int
    depth: Depth
    posted_s: float
    end_s: float = 0.0


class Link:
    """All messages from one rank to another, in order: the n-th receive gets the n-th message."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.asked_s: list[float] = []
        self.n_delivered = 0
        self.n_waited = 0


@dataclass
class Meeting:
    """One collective of some ranks: who has come with what and when, and, once all have, what each gets."""

    ranks: tuple[int, ...]
    offers: dict[int, tuple[Offer, float]] = field(default_factory=dict)
    end_s: list[float] = field(default_factory=list)
    results: list[tuple[torch.Tensor, ...]] = field(default_factory=list)
    depth: Depth = (0, 0)
    misfit: CommError | None = None
    left: set[int] = field(default_factory=set)


def deepest(a: Depth, b: Depth) -> Depth:
    return max(a[0], b[0]), max(a[1], b[1])


def check_all_done(links: Mapping[tuple[int, int], Link], meetings: Mapping[Group, Sequence[Meeting]]) -> None:
    """Raise CommError for the first that was started and never finished."""
    for (src, dst), link in sorted(links.items()):
        left = len(link.sent) - len(link.asked_s)
        if left > 0:
            what = "a message" if left == 1 else f"{left} messages"
            raise CommError(f"rank {src} sent {what} to rank {dst} that rank {dst} never received")
        if link.n_delivered < len(link.asked_s):
            raise CommError(f"rank {dst} started to receive from rank {src} and never called wait()")
        if link.n_waited < len(link.sent):
            raise CommError(f"rank {src} started to send to rank {dst} and never called wait()")
    for meeting in [meeting for same_group in meetings.values() for meeting in same_group]:
        caller, (offer, _) = next(iter(meeting.offers.items()))
        call = offer.name + of_group(offer.group)
        for rank in meeting.ranks:
            if rank not in meeting.offers:
                raise CommError(f"rank {caller} started {call} and rank {rank} never called it")
        for rank in meeting.ranks:
            if rank not in meeting.left:
                raise CommError(f"rank {rank} started {call} and never called wait()")
