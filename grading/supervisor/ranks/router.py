"""The router between the ranks of one case: each is a process on a channel of its own, and this is all they share.

It takes what a rank asks for, enters it into the books of `labkit.ranks.network.Network`, and answers. Whose channel it
came on says which rank it is; nothing that a message claims does. Ranks have their turns as in the simulator: one is
served until it has to wait, then the next that can go on. So the books of an honest run are the simulator's, entry
by entry, however the processes are scheduled. Processes are started and ended elsewhere, and no result is judged here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from grading.worker.protocol.job import Observed
from grading.worker.protocol.ranks import (
    ANSWERED,
    CALLS,
    Answer,
    Barrier,
    Compute,
    Enter,
    Mark,
    Now,
    Over,
    Receive,
    Refused,
    Send,
    WaitCollective,
    WaitReceived,
    WaitSent,
)
from grading.worker.wire.frames import Channel, Closed
from grading.worker.wire.tensor_bytes import blank, pack, unpack
from grading.worker.wire.typed import Frame, WireError, frame_of
from labkit.ranks import Cluster, CommError, Traffic
from labkit.ranks.collectives import COLLECTIVES, OPS, REDUCE, Group, Offer
from labkit.ranks.marks import is_label
from labkit.ranks.network import Need, Network, deadlock
from labkit.spec import Tree, Trouble

MAX_BYTES = 256 * 2**20
"""What all ranks of a case together may hand to the router."""
MAX_CALLS = 50_000
"""How often all ranks of a case together may call it."""
MAX_MARKS = 1_000
"""How many moments of a case may be marked."""
LATE_S = 3.0
"""So long after its time what a rank has sent already still counts: this machine may have stood still."""


class RankTrouble(Exception):
    """A case ended without results, and why. blamed: the rank whose place in its code is named, if any."""

    def __init__(self, trouble: Trouble, blamed: int | None = None) -> None:
        super().__init__(trouble.text)
        self.trouble = trouble
        self.blamed = blamed


class Router:
    """Serves one case. channels: one for each rank, in order. deadline: as of time.monotonic(). patience_s: for how
    long one rank may be silent while it is its turn. at_mark: called with the name of every moment to which all ranks
    have come, while each of them waits for its answer.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        cluster: Cluster,
        deadline: float,
        patience_s: float = math.inf,
        at_mark: Callable[[str], None] | None = None,
    ) -> None:
        self._network = Network(len(channels), cluster)
        self._seats = [_Seat(rank, channel) for rank, channel in enumerate(channels)]
        self._deadline = deadline
        self._patience_s = patience_s
        self._at_mark = at_mark
        self._n_bytes = 0
        self._n_calls = 0

    def run(self) -> list[Observed]:
        """What came of each rank. Raises RankTrouble; then `dismiss` has to be called before another case."""
        turn: int | None = 0
        while turn is not None:
            self._play(self._seats[turn])
            turn = self._after(turn)
        try:
            self._network.check_nothing_left()
        except CommError as error:
            raise RankTrouble(Trouble("raised", str(error))) from error
        return [seat.observed for seat in self._seats]

    def traffic(self) -> Traffic:
        """What was sent, by our own books."""
        return self._network.traffic()

    def frames_bytes(self, rank: int) -> int:
        """The most that frames took of the rank's memory: one call's tensors, and a copy of them on their way."""
        return 2 * self._seats[rank].largest_bytes

    def dismiss(self, within_s: float) -> dict[int, str | None] | None:
        """End the ranks that have not ended: where in its code each stood. None where one of them would not end."""
        deadline = time.monotonic() + within_s
        where = {}
        try:
            for seat in self._seats:
                if seat.observed is None and seat.waits:
                    seat.channel.post(Over(), deadline)
            for seat in self._seats:
                while seat.observed is None:
                    frame = _next_frame(seat.channel, deadline)
                    if isinstance(frame, Observed):
                        seat.observed = frame
                    elif isinstance(frame, ANSWERED):
                        seat.channel.post(Over(), deadline)
                if (trouble := seat.observed.trouble) and trouble.kind == "stopped":
                    where[seat.rank] = trouble.where
        except Exception:
            # Whatever it sends or does not send: it cannot be used for another case.
            return None
        return where

    def _play(self, seat: _Seat) -> None:
        """Serve a rank until it has to wait or has ended."""
        while True:
            if seat.waits:
                while seat.needs and seat.needs[0].ready():
                    seat.needs.pop(0)
                if seat.needs:
                    return
                self._answer(seat)
            frame = self._next_call(seat)
            if isinstance(frame, Observed):
                seat.observed = frame
                if frame.trouble:
                    raise RankTrouble(frame.trouble)
                return
            self._take(seat, frame)
            self._answer_others(seat)

    def _answer_others(self, seat: _Seat) -> None:
        """Answer whoever now has all that it waits for, so that it works on while this one still has its turn.

        An answer changes the books of its own rank alone, and what a rank asks for next is taken at its own turn.
        """
        for other in self._seats:
            if other.waits and other is not seat and all(need.ready() for need in other.needs):
                self._answer(other)

    def _after(self, turn: int) -> int | None:
        """The next rank that can go on, in the order of the simulator; None when all have ended."""
        n = len(self._seats)
        for other in [self._seats[(turn + step) % n] for step in range(1, n + 1)]:
            if other.observed is None and (not other.waits or other.needs[0].ready()):
                return other.rank
        waiting = [(seat.rank, seat.needs[0]) for seat in self._seats if seat.waits]
        if waiting:
            text = deadlock(waiting, [seat.observed is not None for seat in self._seats])
            raise RankTrouble(Trouble("raised", text), blamed=waiting[0][0])
        return None

    def _next_call(self, seat: _Seat) -> Frame:
        self._n_calls += 1
        if self._n_calls > MAX_CALLS:
            raise RankTrouble(Trouble("wall", f"its ranks called one another more than {MAX_CALLS:,} times"))
        try:
            return _next_frame(seat.channel, min(self._deadline, time.monotonic() + self._patience_s))
        except Closed as error:
            raise _ended(seat) from error

    def _take(self, seat: _Seat, call: Frame) -> None:
        """Enter a call into the books. Raises WireError where it makes no sense."""
        try:
            waits_for = _BY_CALL[type(call)](self, seat, call)
        except CommError as error:
            self._reply(seat, Refused(str(error)))
            return
        if waits_for is not None:
            seat.needs, seat.finish = waits_for

    def _answer(self, seat: _Seat) -> None:
        finish, seat.finish, seat.needs = seat.finish, None, []
        try:
            reply: Frame = Answer(finish())
        except CommError as error:
            reply = Refused(str(error))
        self._reply(seat, reply)

    def _reply(self, seat: _Seat, reply: Frame) -> None:
        try:
            seat.channel.post(reply, self._deadline)
        except Closed as error:
            raise _ended(seat) from error

    def _send(self, seat: _Seat, call: Send) -> None:
        to, tensor = self._other(seat, call.to), unpack(call.tensor)
        self._weigh(seat, tensor.nbytes)
        number, need = self._network.send(seat.rank, to, tensor)
        seat.under_way["sent", to, number] = [need]

    def _receive(self, seat: _Seat, call: Receive) -> None:
        source = self._other(seat, call.source)
        number, need = self._network.post_receive(seat.rank, source)
        seat.under_way["received", source, number] = [need]

    def _compute(self, seat: _Seat, call: Compute) -> None:
        seconds = call.seconds
        if type(seconds) is not float or not seconds >= 0:
            raise WireError("a time that is none")
        self._network.clock_s[seat.rank] += seconds

    def _wait_sent(self, seat: _Seat, call: WaitSent) -> _Waits:
        to, number = self._other(seat, call.to), call.number

        def finish() -> Tree:
            self._network.sent(seat.rank, to, number)
            return None

        return seat.started("sent", to, number), finish

    def _wait_received(self, seat: _Seat, call: WaitReceived) -> _Waits:
        source, number, like = self._other(seat, call.source), call.number, blank(call.like)

        def finish() -> Tree:
            tensor = self._network.deliver(seat.rank, source, number, like)
            seat.note(tensor.nbytes)
            return pack(tensor)

        return seat.started("received", source, number), finish

    def _barrier(self, seat: _Seat, call: Barrier) -> _Waits:
        group = self._group(seat, call.group)
        number, needs = self._network.enter_barrier(seat.rank, group)

        def finish() -> Tree:
            self._network.leave_barrier(seat.rank, number, group)
            return None

        return needs, finish

    def _mark(self, seat: _Seat, call: Mark) -> _Waits:
        label, held_bytes = call.label, call.held_bytes
        if not is_label(label):
            raise WireError("a moment without a name")
        if held_bytes is not None and (type(held_bytes) is not int or not 0 <= held_bytes < 2**63):
            raise WireError("memory that cannot be")
        n_before = len(self._network.moments)
        if n_before >= MAX_MARKS:
            raise RankTrouble(Trouble("wall", f"its ranks marked more than {MAX_MARKS:,} moments"))
        needs = self._network.mark(seat.rank, label, held_bytes)
        if self._at_mark is not None and len(self._network.moments) > n_before:
            # The others wait for this one, and this one for us.
            self._at_mark(label)
        return needs, lambda: None

    def _enter(self, seat: _Seat, call: Enter) -> _Waits:
        offer = self._offer(seat, call)
        self._weigh(seat, sum(tensor.nbytes for tensor in offer.inputs))
        try:
            number, needs = self._network.enter(seat.rank, offer)
        except RuntimeError as error:
            # What PyTorch has no such operation for; of our own errors it is one already.
            raise error if isinstance(error, CommError) else CommError(f"{offer.name}: {error}") from error
        seat.under_way["collective", None, number] = needs
        return [], lambda: None

    def _wait_collective(self, seat: _Seat, call: WaitCollective) -> _Waits:
        number = call.number

        def finish() -> Tree:
            tensors = self._network.leave(seat.rank, number)
            seat.note(sum(tensor.nbytes for tensor in tensors))
            return [pack(tensor) for tensor in tensors]

        return seat.started("collective", None, number), finish

    def _now(self, seat: _Seat, call: Now) -> _Waits:
        return [], lambda: self._network.read_clock(seat.rank)

    def _offer(self, seat: _Seat, call: Enter) -> Offer:
        name, inputs, op, src = call.name, call.inputs, call.op, call.src
        outputs = [] if call.outputs is None else call.outputs
        group = self._group(seat, call.group)
        n = len(group or self._seats)
        if name not in COLLECTIVES or not isinstance(inputs, list) or not isinstance(outputs, list):
            raise WireError("a collective that nobody knows")
        if len(inputs) != (n if name in ("reduce_scatter", "all_to_all") else 1):
            raise WireError(f"{len(inputs)} tensors for {name} of {n} ranks")
        if len(outputs) != (n if name == "all_to_all" else 0):
            raise WireError(f"{len(outputs)} tensors to receive {name} of {n} ranks into")
        if (op not in OPS) if name in REDUCE else op is not None:
            raise WireError(f"{name} by an operation that it has not")
        if (type(src) is not int or not 0 <= src < n) if name == "broadcast" else src is not None:
            raise WireError(f"{name} from a rank that it has not")
        return Offer(name, tuple(map(unpack, inputs)), tuple(map(blank, outputs)), op=op, src=src, group=group)

    def _group(self, seat: _Seat, ranks: Tree) -> Group:
        if ranks is None:
            return None
        whole = isinstance(ranks, list) and all(type(rank) is int for rank in ranks)
        if not whole or ranks != sorted(set(ranks)) or not {seat.rank} <= set(ranks) <= set(range(len(self._seats))):
            raise WireError("a group that there is not")
        return tuple(ranks)

    def _other(self, seat: _Seat, rank: Tree) -> int:
        if type(rank) is not int or not 0 <= rank < len(self._seats) or rank == seat.rank:
            raise WireError("a rank that there is not")
        return rank

    def _weigh(self, seat: _Seat, n_bytes: int) -> None:
        seat.note(n_bytes)
        self._n_bytes += n_bytes
        if self._n_bytes > MAX_BYTES:
            raise RankTrouble(Trouble("memory", f"its ranks sent one another more than {MAX_BYTES // 2**20} MiB"))


_Waits = tuple[list[Need], Callable[[], Tree]]
"""What a rank that has called waits for, and what makes the answer once that is there."""
_BY_CALL = {
    Send: Router._send,
    Receive: Router._receive,
    Compute: Router._compute,
    WaitSent: Router._wait_sent,
    WaitReceived: Router._wait_received,
    Barrier: Router._barrier,
    Mark: Router._mark,
    Enter: Router._enter,
    WaitCollective: Router._wait_collective,
    Now: Router._now,
}


def _next_frame(channel: Channel, deadline: float) -> Frame:
    """Its next frame. Raises TimeoutError also where one after the other is there already and there is no end to it."""
    if time.monotonic() > deadline + LATE_S:
        raise TimeoutError
    return frame_of(*channel.receive(deadline), (*CALLS, Observed), "a call")


def _ended(seat: _Seat) -> RankTrouble:
    return RankTrouble(Trouble("died", f"the process of rank {seat.rank} ended"))


class _Seat:
    """A rank: its channel, what it has started, and, while it waits for an answer, for what."""

    def __init__(self, rank: int, channel: Channel) -> None:
        self.rank = rank
        self.channel = channel
        self.under_way: dict[tuple[str, int | None, int], list[Need]] = {}
        self.needs: list[Need] = []
        self.finish: Callable[[], Tree] | None = None
        self.observed: Observed | None = None
        self.largest_bytes = 0

    def note(self, n_bytes: int) -> None:
        """A call of it handed over, or brought, this much."""
        self.largest_bytes = max(self.largest_bytes, n_bytes)

    @property
    def waits(self) -> bool:
        return self.finish is not None

    def started(self, what: str, other: int | None, number: Tree) -> list[Need]:
        """The needs of what it has started and not waited for yet. Raises WireError where there is no such thing."""
        if type(number) is not int or (needs := self.under_way.pop((what, other, number), None)) is None:
            raise WireError("a wait for what was not started")
        return list(needs)
