"""The router between the ranks of one case: each is a process on a channel of its own, and this is all they share.

It takes what a rank asks for, has it entered into the books (`calls.py`), and answers. Whose channel it
came on says which rank it is; nothing that a message claims does. Ranks have their turns as in the simulator: one is
served until it has to wait, then the next that can go on. So the books of an honest run are the simulator's, entry
by entry, however the processes are scheduled. Processes are started and ended elsewhere, and no result is judged here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from grading.supervisor.ranks.calls import Calls
from grading.supervisor.ranks.seat import RankTrouble, Seat, ended, next_frame
from grading.worker.protocol.job import Observed
from grading.worker.protocol.ranks import ANSWERED, Answer, Over, Refused
from grading.worker.wire.frames import Channel, Closed
from grading.worker.wire.typed import Frame
from labkit.ranks import Cluster, CommError, Traffic
from labkit.ranks.needs import deadlock
from labkit.ranks.network import Network
from labkit.spec import Trouble

MAX_CALLS = 50_000
"""How often all ranks of a case together may call it."""


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
        self._calls = Calls(self._network, at_mark)
        self._seats = [Seat(rank, channel) for rank, channel in enumerate(channels)]
        self._deadline = deadline
        self._patience_s = patience_s
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
                    frame = next_frame(seat.channel, deadline)
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

    def _play(self, seat: Seat) -> None:
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

    def _answer_others(self, seat: Seat) -> None:
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

    def _next_call(self, seat: Seat) -> Frame:
        self._n_calls += 1
        if self._n_calls > MAX_CALLS:
            raise RankTrouble(Trouble("wall", f"its ranks called one another more than {MAX_CALLS:,} times"))
        try:
            return next_frame(seat.channel, min(self._deadline, time.monotonic() + self._patience_s))
        except Closed as error:
            raise ended(seat) from error

    def _take(self, seat: Seat, call: Frame) -> None:
        """Enter a call into the books. Raises WireError where it makes no sense."""
        try:
            waits_for = self._calls.take(seat, call)
        except CommError as error:
            self._reply(seat, Refused(str(error)))
            return
        if waits_for is not None:
            seat.needs, seat.finish = waits_for

    def _answer(self, seat: Seat) -> None:
        finish, seat.finish, seat.needs = seat.finish, None, []
        try:
            reply: Frame = Answer(finish())
        except CommError as error:
            reply = Refused(str(error))
        self._reply(seat, reply)

    def _reply(self, seat: Seat, reply: Frame) -> None:
        try:
            seat.channel.post(reply, self._deadline)
        except Closed as error:
            raise ended(seat) from error
