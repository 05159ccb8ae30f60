"""What a rank may ask for, and how it enters the books of `labkit.ranks.network.Network`.

A call is checked for sense before anything is entered. What a rank gets back once it need not wait any more is made
here too. Whose turn it is and who waits for whom is the router's.
"""

from __future__ import annotations

from collections.abc import Callable

from grading.supervisor.ranks.seat import RankTrouble, Seat
from grading.worker.protocol.ranks import (
    Barrier,
    Compute,
    Enter,
    Mark,
    Now,
    Receive,
    Send,
    WaitCollective,
    WaitReceived,
    WaitSent,
)
from grading.worker.wire.tensor_bytes import blank, pack, unpack
from grading.worker.wire.typed import Frame, WireError
from labkit.ranks import CommError
from labkit.ranks.collectives import COLLECTIVES, OPS, REDUCE, Group, Offer
from labkit.ranks.marks import is_label
from labkit.ranks.needs import Need
from labkit.ranks.network import Network
from labkit.spec import Tree, Trouble

MAX_BYTES = 256 * 2**20
"""What all ranks of a case together may hand to the router."""
MAX_MARKS = 1_000
"""How many moments of a case may be marked."""

Waits = tuple[list[Need], Callable[[], Tree]]
"""What a rank that has called waits for, and what makes the answer once that is there."""


class Calls:
    """The calls of one case. at_mark: called with the name of every moment to which all ranks have come."""

    def __init__(self, network: Network, at_mark: Callable[[str], None] | None = None) -> None:
        self._network = network
        self._ranks = range(network.world_size)
        self._at_mark = at_mark
        self._n_bytes = 0

    def take(self, seat: Seat, call: Frame) -> Waits | None:
        """Enter a call: what its rank waits for, or None. Raises WireError where it makes no sense, CommError where
        the rank is to be told of a mistake.
        """
        return _BY_CALL[type(call)](self, seat, call)

    def _send(self, seat: Seat, call: Send) -> None:
        to, tensor = self._other(seat, call.to), unpack(call.tensor)
        self._weigh(seat, tensor.nbytes)
        number, need = self._network.send(seat.rank, to, tensor)
        seat.under_way["sent", to, number] = [need]

    def _receive(self, seat: Seat, call: Receive) -> None:
        source = self._other(seat, call.source)
        number, need = self._network.post_receive(seat.rank, source)
        seat.under_way["received", source, number] = [need]

    def _compute(self, seat: Seat, call: Compute) -> None:
        seconds = call.seconds
        if type(seconds) is not float or not seconds >= 0:
            raise WireError("a time that is none")
        self._network.clock_s[seat.rank] += seconds

    def _wait_sent(self, seat: Seat, call: WaitSent) -> Waits:
        to, number = self._other(seat, call.to), call.number

        def finish() -> Tree:
            self._network.sent(seat.rank, to, number)
            return None

        return seat.started("sent", to, number), finish

    def _wait_received(self, seat: Seat, call: WaitReceived) -> Waits:
        source, number, like = self._other(seat, call.source), call.number, blank(call.like)

        def finish() -> Tree:
            tensor = self._network.deliver(seat.rank, source, number, like)
            seat.note(tensor.nbytes)
            return pack(tensor)

        return seat.started("received", source, number), finish

    def _barrier(self, seat: Seat, call: Barrier) -> Waits:
        group = self._group(seat, call.group)
        number, needs = self._network.enter_barrier(seat.rank, group)

        def finish() -> Tree:
            self._network.leave_barrier(seat.rank, number, group)
            return None

        return needs, finish

    def _mark(self, seat: Seat, call: Mark) -> Waits:
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

    def _enter(self, seat: Seat, call: Enter) -> Waits:
        offer = self._offer(seat, call)
        self._weigh(seat, sum(tensor.nbytes for tensor in offer.inputs))
        try:
            number, needs = self._network.enter(seat.rank, offer)
        except RuntimeError as error:
            # What PyTorch has no such operation for; of our own errors it is one already.
            raise error if isinstance(error, CommError) else CommError(f"{offer.name}: {error}") from error
        seat.under_way["collective", None, number] = needs
        return [], lambda: None

    def _wait_collective(self, seat: Seat, call: WaitCollective) -> Waits:
        number = call.number

        def finish() -> Tree:
            tensors = self._network.leave(seat.rank, number)
            seat.note(sum(tensor.nbytes for tensor in tensors))
            return [pack(tensor) for tensor in tensors]

        return seat.started("collective", None, number), finish

    def _now(self, seat: Seat, call: Now) -> Waits:
        return [], lambda: self._network.read_clock(seat.rank)

    def _offer(self, seat: Seat, call: Enter) -> Offer:
        name, inputs, op, src = call.name, call.inputs, call.op, call.src
        outputs = [] if call.outputs is None else call.outputs
        group = self._group(seat, call.group)
        n = len(group or self._ranks)
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

    def _group(self, seat: Seat, ranks: Tree) -> Group:
        if ranks is None:
            return None
        whole = isinstance(ranks, list) and all(type(rank) is int for rank in ranks)
        if not whole or ranks != sorted(set(ranks)) or not {seat.rank} <= set(ranks) <= set(self._ranks):
            raise WireError("a group that there is not")
        return tuple(ranks)

    def _other(self, seat: Seat, rank: Tree) -> int:
        if type(rank) is not int or rank not in self._ranks or rank == seat.rank:
            raise WireError("a rank that there is not")
        return rank

    def _weigh(self, seat: Seat, n_bytes: int) -> None:
        seat.note(n_bytes)
        self._n_bytes += n_bytes
        if self._n_bytes > MAX_BYTES:
            raise RankTrouble(Trouble("memory", f"its ranks sent one another more than {MAX_BYTES // 2**20} MiB"))


_BY_CALL = {
    Send: Calls._send,
    Receive: Calls._receive,
    Compute: Calls._compute,
    WaitSent: Calls._wait_sent,
    WaitReceived: Calls._wait_received,
    Barrier: Calls._barrier,
    Mark: Calls._mark,
    Enter: Calls._enter,
    WaitCollective: Calls._wait_collective,
    Now: Calls._now,
}
