"""The books of a network: what is on its way over each link, who has come to a barrier or a collective, and when.

It blocks nobody. Whoever runs the ranks asks a `Need` whether it is met: the simulator between turns, a router before
it answers. Ranks are given to it, never taken from a message.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import torch

from labkit.ranks.cluster import Cluster
from labkit.ranks.collectives import Group, Offer, check_exchange, check_fit, form, of_group, plan, results
from labkit.ranks.errors import CommError
from labkit.ranks.marks import Marks
from labkit.ranks.needs import Need
from labkit.ranks.ports import Ports
from labkit.ranks.traffic import Moment, Traffic, Transfer
from labkit.ranks.under_way import Depth, Link, Meeting, Message, check_all_done, deepest

FREE_READS = 4
"""So often a rank may read what others did to its clock and have nothing counted."""
_CLOCK_BYTES = 8


class Network:
    """The links between `world_size` ranks on a cluster, each rank's clock, and the chain of messages up to it."""

    def __init__(self, world_size: int, cluster: Cluster) -> None:
        self.world_size = world_size
        self.cluster = cluster
        self.clock_s = [0.0] * world_size
        self._depth: list[Depth] = [(0, 0)] * world_size
        self._ports = Ports(cluster)
        self._links: dict[tuple[int, int], Link] = {}
        self._counted: list[tuple[int, int, int, Depth]] = []
        self._transfers: list[Transfer] = []
        self._barriers: dict[Group, dict[int, list[tuple[Depth, float]]]] = {}
        """By group: when each of its ranks has come to a barrier."""
        self._meetings: dict[Group, list[Meeting]] = defaultdict(list)
        self._entered: list[list[Meeting]] = [[] for _ in range(world_size)]
        """By rank: the collectives that it has come to."""
        self._n_in_group: Counter[tuple[int, Group]] = Counter()
        self._busy_until_s = [0.0] * world_size
        self._moved_by: list[int | None] = [None] * world_size
        """Who has last moved a rank's clock, where that is another rank and the clock was not read since."""
        self._n_reads = [0] * world_size
        self._misfit: CommError | None = None
        self._marks = Marks(world_size)
        self.moments: list[Moment] = []
        """The moments to which all ranks have come, in order."""

    def send(self, src: int, dst: int, tensor: torch.Tensor) -> tuple[int, Need]:
        """Put a tensor, as it is now, on the link; its number there, and what its sender waits for."""
        link = self._links.setdefault((src, dst), Link())
        depth = self._next(self._depth[src], src, dst)
        number = len(link.sent)
        self._counted.append((src, dst, tensor.nbytes, depth))
        link.sent.append(Message(tensor.detach().clone(), tensor.nbytes, depth, self.clock_s[src]))
        self._match(src, dst, link, number)
        return number, Need(lambda: len(link.asked_s) > number, dst, f"for rank {dst} to receive")

    def sent(self, src: int, dst: int, number: int) -> None:
        """The sender has waited: its clock is where the message has arrived."""
        link = self._links[src, dst]
        link.n_waited += 1
        self._move(src, link.sent[number].end_s, dst)

    def post_receive(self, dst: int, src: int) -> tuple[int, Need]:
        """Ask for the next message of the link; its number there, and what its receiver waits for."""
        link = self._links.setdefault((src, dst), Link())
        number = len(link.asked_s)
        link.asked_s.append(self.clock_s[dst])
        self._match(src, dst, link, number)
        return number, Need(lambda: len(link.sent) > number, src, f"for a message from rank {src}")

    def deliver(self, dst: int, src: int, number: int, like: torch.Tensor) -> torch.Tensor:
        """The message with this number, which has to have the shape and dtype of `like`. Raises CommError."""
        link = self._links[src, dst]
        message = link.sent[number]
        tensor, message.tensor = message.tensor, None
        link.n_delivered += 1
        self._depth[dst] = deepest(self._depth[dst], message.depth)
        self._move(dst, message.end_s, src)
        if (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
            error = CommError(f"rank {src} sends {form(tensor)} and rank {dst} receives it into {form(like)}")
            # A shape says as much as its numbers are large, and costs no bytes: catching this does not undo it.
            self._misfit = self._misfit or error
            raise error
        return tensor

    def read_clock(self, rank: int) -> float:
        """The rank's clock. It says what others have let theirs be, so reading it again and again is counted: each
        time as a message of 8 bytes from who has moved it.
        """
        src, self._moved_by[rank] = self._moved_by[rank], None
        if src is not None:
            self._n_reads[rank] += 1
            if self._n_reads[rank] > FREE_READS:
                # What is known of another's clock hangs on all that this one has done.
                depth = self._next(deepest(self._depth[rank], self._depth[src]), src, rank)
                self._counted.append((src, rank, _CLOCK_BYTES, depth))
                self._depth[rank] = depth
        return self.clock_s[rank]

    def enter_barrier(self, rank: int, group: Group = None) -> tuple[int, list[Need]]:
        """A rank has come to a barrier: its number, and what the rank waits for, one need after the other."""
        came = self._barriers.setdefault(group, {other: [] for other in self._ranks(group)})
        number = len(came[rank])
        came[rank].append((self._depth[rank], self.clock_s[rank]))
        return number, [
            Need(lambda theirs=theirs: len(theirs) > number, other, f"at a barrier{of_group(group)} for rank {other}")
            for other, theirs in came.items()
        ]

    def leave_barrier(self, rank: int, number: int, group: Group = None) -> None:
        """Whatever is sent after a barrier depends on all that came before it."""
        for other, theirs in self._barriers[group].items():
            depth, time_s = theirs[number]
            self._depth[rank] = deepest(self._depth[rank], depth)
            self._move(rank, time_s, other)

    def mark(self, rank: int, label: str, held_bytes: int | None) -> list[Need]:
        """A rank has come to a named moment, at which all halt: what it waits for. Raises CommError on a misfit."""
        try:
            mark = self._marks.come(rank, label, held_bytes)
        except CommError as error:
            # A name can say anything, and costs no bytes: catching this does not undo it.
            self._misfit = self._misfit or error
            raise CommError(str(error)) from error
        everyone = range(self.world_size)
        if len(mark.held_bytes) == self.world_size:
            sent = Counter()
            for src, _, n_bytes, _ in self._counted:
                sent[src] += n_bytes
            metered = [mark.held_bytes[one] for one in everyone]
            held = tuple(n if n is None else n + self._under_way_bytes(one) for one, n in enumerate(metered))
            calls = tuple(map(len, self._entered))
            self.moments.append(Moment(label, held, calls, tuple(sent[one] for one in everyone)))
        where = f"at the mark {label!r}"
        return [
            Need(lambda other=other: other in mark.held_bytes, other, f"{where} for rank {other}") for other in everyone
        ]

    def enter(self, rank: int, offer: Offer) -> tuple[int, list[Need]]:
        """A rank has come to its next collective: which one of its own, and the needs. Raises CommError on a misfit."""
        meetings, number = self._meetings[offer.group], len(self._entered[rank])
        number_in_group = self._n_in_group[rank, offer.group]
        self._n_in_group[rank, offer.group] += 1
        if number_in_group == len(meetings):
            meetings.append(Meeting(self._ranks(offer.group)))
        meeting = meetings[number_in_group]
        self._entered[rank].append(meeting)
        for other, (theirs, _) in meeting.offers.items():
            check_fit(rank, offer, other, theirs, number_in_group)
        meeting.offers[rank] = (offer.as_it_is_now(), self.clock_s[rank])
        meeting.depth = deepest(meeting.depth, self._depth[rank])
        if len(meeting.offers) == len(meeting.ranks):
            self._hold(meeting)
        where = f"in {offer.name}{of_group(offer.group)}"
        return number, [
            Need(lambda other=other: other in meeting.offers, other, f"{where} for rank {other}")
            for other in meeting.ranks
        ]

    def leave(self, rank: int, number: int) -> tuple[torch.Tensor, ...]:
        """What a rank gets from the collective with this number, to which all have come. Raises CommError."""
        meeting = self._entered[rank][number]
        meeting.left.add(rank)
        if meeting.misfit is not None:
            raise CommError(str(meeting.misfit))
        place = meeting.ranks.index(rank)
        self._depth[rank] = deepest(self._depth[rank], meeting.depth)
        self._move(rank, meeting.end_s[place], meeting.ranks[place - 1])
        result, meeting.results[place] = meeting.results[place], ()
        return result

    def check_nothing_left(self) -> None:
        """Raise CommError for what was started and never finished, and for a message that did not fit."""
        if self._misfit is not None:
            raise CommError(str(self._misfit))
        check_all_done(self._links, self._meetings)

    def traffic(self) -> Traffic:
        """All that was sent so far."""
        ranks, links = range(self.world_size), defaultdict(list)
        across = [0] * (self.cluster.node_of(self.world_size - 1) + 1)
        for src, dst, n_bytes, _ in self._counted:
            links[src, dst].append(n_bytes)
            across[self.cluster.node_of(src)] += n_bytes * self.cluster.crosses(src, dst)
        return Traffic(
            bytes_sent=tuple(sum(sum(sizes) for (src, _), sizes in links.items() if src == rank) for rank in ranks),
            messages=tuple(sum(len(sizes) for (src, _), sizes in links.items() if src == rank) for rank in ranks),
            rounds=max((depth for *_, (depth, _) in self._counted), default=0),
            link_bytes={ends: sum(sizes) for ends, sizes in sorted(links.items())},
            link_messages={ends: len(sizes) for ends, sizes in sorted(links.items())},
            collectives=tuple(map(len, self._entered)),
            bytes_across=tuple(across),
            rounds_across=max((crossed for *_, (_, crossed) in self._counted), default=0),
            time_s=tuple(self.clock_s),
            transfers=tuple(sorted(self._transfers, key=lambda one: (one.start_s, one.src, one.dst, one.number))),
            moments=tuple(self.moments),
        )

    def _match(self, src: int, dst: int, link: Link, number: int) -> None:
        """Once a message is both sent and asked for, its time on the wire is known."""
        if number < len(link.sent) and number < len(link.asked_s):
            message = link.sent[number]
            ready_s = max(message.posted_s, link.asked_s[number])
            message.end_s = self._transfer(src, dst, message.n_bytes, message.depth[0], ready_s, "send")

    def _hold(self, meeting: Meeting) -> None:
        """All have come: work out what each gets, and let the messages of the usual algorithm take their time.

        A rank's collectives run one after the other beside its own work, as on a GPU's communication stream.
        """
        ranks, name = meeting.ranks, meeting.offers[meeting.ranks[0]][0].name
        offers = [meeting.offers[rank][0] for rank in ranks]
        came_at_s = {rank: came_s for rank, (_, came_s) in meeting.offers.items()}
        if name == "all_to_all":
            try:
                check_exchange(offers, ranks)
            except CommError as error:
                # As with a message: catching this, on whichever rank, does not undo it.
                meeting.misfit, self._misfit = error, self._misfit or error
                return
        meeting.results = results(offers)
        meeting.offers = {rank: (replace(offer, inputs=(), outputs=()), 0.0) for rank, offer in zip(ranks, offers)}
        at_s = {rank: max(came_s, self._busy_until_s[rank]) for rank, came_s in sorted(came_at_s.items())}
        depth = dict.fromkeys(ranks, meeting.depth)
        for step in plan(offers):
            then_s, deeper = dict(at_s), dict(depth)
            for src, dst, n_bytes in [(ranks[a], ranks[b], n_bytes) for a, b, n_bytes in step]:
                one = self._next(depth[src], src, dst)
                self._counted.append((src, dst, n_bytes, one))
                end_s = self._transfer(src, dst, n_bytes, one[0], max(at_s[src], at_s[dst]), name)
                then_s[src], then_s[dst] = max(then_s[src], end_s), max(then_s[dst], end_s)
                deeper[dst] = deepest(deeper[dst], one)
            at_s, depth = then_s, deeper
        for one in depth.values():
            meeting.depth = deepest(meeting.depth, one)
        for rank, end_s in at_s.items():
            self._busy_until_s[rank] = end_s
        meeting.end_s = list(at_s.values())

    def _move(self, rank: int, time_s: float, by: int) -> None:
        """The rank has waited for another one until `time_s`."""
        self.clock_s[rank] = max(self.clock_s[rank], time_s)
        if by != rank:
            # Also a clock that was ahead says something: that the other's was not.
            self._moved_by[rank] = by

    def _under_way_bytes(self, rank: int) -> int:
        """What a rank has sent that nobody has received, and what a collective has for it that it has not waited for.

        The books have copies of it. On a machine they would be the rank's own buffers.
        """
        links = (link for (src, _), link in self._links.items() if src == rank)
        sent = sum(one.n_bytes for link in links for one in link.sent if one.tensor is not None)
        waited_for = (one for one in self._entered[rank] if one.results and rank not in one.left)
        return sent + sum(part.nbytes for one in waited_for for part in one.results[one.ranks.index(rank)])

    def _ranks(self, group: Group) -> tuple[int, ...]:
        return group or tuple(range(self.world_size))

    def _next(self, depth: Depth, src: int, dst: int) -> Depth:
        return depth[0] + 1, depth[1] + self.cluster.crosses(src, dst)

    def _transfer(self, src: int, dst: int, n_bytes: int, number: int, ready_s: float, call: str) -> float:
        start_s, end_s = self._ports.place(src, dst, n_bytes, ready_s)
        self._transfers.append(Transfer(src, dst, n_bytes, number, start_s, end_s, call))
        return end_s
