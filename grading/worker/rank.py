"""One rank of an exercise that has several, in a process of its own: it asks the router for what it wants, and waits.

Nothing is counted here and no other rank is known: the channel is all there is. The other end is
`grading.supervisor.ranks.router`.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch.utils._python_dispatch import _disable_current_modes

from grading.worker.not_timed import not_timed
from grading.worker.protocol.job import RunCase
from grading.worker.protocol.ranks import (
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
from grading.worker.wire.frames import Channel
from grading.worker.wire.tensor_bytes import form_of, pack, unpack
from grading.worker.wire.typed import Frame
from labkit.observe import observe_rank
from labkit.ranks import Comm, CommError
from labkit.ranks.collectives import Group, Offer
from labkit.ranks.groups import GroupComm
from labkit.ranks.scheduler import Stopped
from labkit.spec import Case, Exercise, Observation, Tree
from labkit.tree import leaves


def run_rank(channel: Channel, exercise: Exercise, answers: SimpleNamespace, case: Case, sent: RunCase) -> Observation:
    """Drive the answer as the rank that `sent` names, on its part of the inputs."""
    comm = RoutedComm(channel, sent.rank, sent.world_size)
    if sent.lend:
        _read_once(sent.tree)
    return observe_rank(exercise, answers, case, sent.tree, comm, lend=sent.lend)


def _read_once(inputs: Tree) -> None:
    """Have the inputs in memory before anything of the student's: what is not there yet leaves room to hide in."""
    for _, leaf in leaves(inputs):
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            leaf.reshape(-1).view(torch.uint8)[:: mmap.PAGESIZE].sum()


class RoutedComm(Comm):
    """One rank's end of a network whose books are the router's.

    A start is not answered; a wait, a barrier and whatever may be refused are. Messages of a link and collectives go by
    their numbers, which both ends count.
    """

    def __init__(self, channel: Channel, rank: int, world_size: int) -> None:
        super().__init__(rank, world_size)
        self._channel = channel
        self._n_sent: Counter[int] = Counter()
        self._n_received: Counter[int] = Counter()
        self._n_collectives = 0
        self._is_over = False

    @property
    def now_s(self) -> float:
        """This rank's virtual clock."""
        # No meter of the rank's own operations sees what the channel does.
        with _disable_current_modes():
            return self._ask(Now())

    def _start_send(self, tensor: torch.Tensor, dst: int) -> Callable[[], None]:
        self._call(Send(dst, pack(tensor)))
        number = self._n_sent[dst]
        self._n_sent[dst] += 1

        def finish() -> None:
            self._ask(WaitSent(dst, number))

        return finish

    def _start_recv(self, tensor: torch.Tensor, src: int) -> Callable[[], None]:
        self._call(Receive(src))
        number = self._n_received[src]
        self._n_received[src] += 1

        def finish() -> None:
            received = self._ask(WaitReceived(src, number, form_of(tensor)))
            tensor.detach().copy_(unpack(received))

        return finish

    def _group(self, ranks: tuple[int, ...]) -> Comm:
        return GroupComm(self, ranks)

    def _barrier(self, group: Group) -> None:
        self._ask(Barrier(group and list(group)))

    def _mark(self, label: str, held_bytes: int | None) -> None:
        self._ask(Mark(label, held_bytes))

    def _start_collective(self, offer: Offer) -> Callable[[], None]:
        inputs = [pack(tensor) for tensor in offer.inputs]
        number = self._n_collectives
        # Also one that is refused has its number.
        self._n_collectives += 1
        outputs = [form_of(tensor) for tensor in offer.outputs] if offer.name == "all_to_all" else None
        self._ask(Enter(offer.name, inputs, offer.op, offer.src, outputs, offer.group and list(offer.group)))

        def finish() -> None:
            for into, result in zip(offer.outputs, self._ask(WaitCollective(number))):
                into.detach().copy_(unpack(result))

        return finish

    def _compute(self, seconds: float) -> None:
        self._call(Compute(float(seconds)))

    def _call(self, call: Frame) -> None:
        if self._is_over:
            raise Stopped
        self._channel.post(call)

    def _ask(self, call: Frame) -> Tree:
        """Call and wait for the answer. Raises CommError where it is refused, Stopped where the run is over."""
        self._call(call)
        # Nor does a frame's memory belong on the device that a program has chosen for its tensors.
        with not_timed(), torch.device("cpu"):
            reply = self._channel.expect((Answer, Refused, Over))
        if isinstance(reply, Over):
            self._is_over = True
            raise Stopped
        if isinstance(reply, Refused):
            raise CommError(reply.text)
        return reply.value
