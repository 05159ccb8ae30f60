"""What the ranks of a run sent one another: bytes, messages and rounds, and when on the virtual clock. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labkit.measures import add_moment, combined


@dataclass(frozen=True)
class Transfer:
    """One message. number: its place in the longest chain of messages that it had to wait for, from 1 on.

        Transfer(src=0, dst=1, n_bytes=4096, number=1, start_s=0.0, end_s=2.3e-5)

    call: "send", or the collective that it is a part of.
    """

    src: int
    dst: int
    n_bytes: int
    number: int
    start_s: float
    end_s: float
    call: str = "send"


@dataclass(frozen=True)
class Moment:
    """A moment at which all ranks have halted, by the name that it was marked with. Of each rank: what it held, where
    its memory was metered, with what was under way from it or to it; and what it had called and sent so far.

        Moment("between layers", held_bytes=(64, 64), collectives=(2, 2), bytes_sent=(128, 128))
    """

    label: str
    held_bytes: tuple[int | None, ...]
    collectives: tuple[int, ...]
    bytes_sent: tuple[int, ...]


@dataclass(frozen=True)
class Traffic:
    """What was sent: by each rank, and over each link (from, to).

        Traffic((4096, 0), (1, 0), rounds=1, link_bytes={(0, 1): 4096}, link_messages={(0, 1): 1})

    rounds is the longest chain of messages of which each could only be sent after the one before had arrived;
    rounds_across counts only the messages of such a chain that leave their node. A rank may send to many in one round:
    where each port counts, ask for `seconds` on the cluster `UNIT`. Of a collective, the messages of the
    usual algorithm count: rings, and a binomial tree for broadcast.
    """

    bytes_sent: tuple[int, ...]
    messages: tuple[int, ...]
    rounds: int
    link_bytes: Mapping[tuple[int, int], int]
    link_messages: Mapping[tuple[int, int], int]
    collectives: tuple[int, ...] = ()
    """Collectives that each rank called; barriers are not among them."""
    bytes_across: tuple[int, ...] = ()
    """Bytes that left each node."""
    rounds_across: int = 0
    time_s: tuple[float, ...] = ()
    """When each rank was done, on the virtual clock."""
    transfers: tuple[Transfer, ...] = ()
    """All messages that arrived, as they go: by start, then by rank."""
    moments: tuple[Moment, ...] = ()
    """What was marked, in order."""

    @property
    def bytes_received(self) -> tuple[int, ...]:
        """Bytes that each rank was sent."""
        ranks = range(len(self.bytes_sent))
        return tuple(sum(n for (_, dst), n in self.link_bytes.items() if dst == rank) for rank in ranks)

    @property
    def seconds(self) -> float:
        """When the last rank was done, on the virtual clock."""
        return max(self.time_s, default=0.0)


def figures(traffic: Traffic) -> dict[str, float]:
    """The measures of a run of several ranks, by name; `labkit.measures` has how the ranks' figures are combined."""
    by_part = {
        "bytes_sent": traffic.bytes_sent,
        "bytes_total": traffic.bytes_sent,
        "messages": traffic.messages,
        "messages_total": traffic.messages,
        "collectives": traffic.collectives,
        "bytes_across": traffic.bytes_across,
        "rounds": (traffic.rounds,),
        "rounds_across": (traffic.rounds_across,),
        "seconds": (traffic.seconds,),
    }
    found = {name: combined(name, values) for name, values in by_part.items()}
    for moment in traffic.moments:
        for held_bytes in moment.held_bytes:
            if held_bytes is not None:
                add_moment(found, "held_bytes", moment.label, held_bytes)
    return found
