"""One real rank's end: the default process group of torch.distributed behind the names and promises of `Comm`.

It writes down each step for the count, and what it waits for where the watchdog can read it. Transfers are those of
gloo or NCCL; shapes that do not fit are theirs to notice, or the count's afterwards. Waiting on NCCL holds up the
GPU's stream and not the program, so the watchdog finds a rank that hangs there at whatever needs the values.
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist

from labkit.ranks.collectives import Group, Offer
from labkit.ranks.comm import Comm
from labkit.ranks.groups import GroupComm
from labkit.ranks.resimulation import RankStep, form_of, offer_without_values
from labkit.ranks.torch_collectives import start

NOTE_BYTES = 128
NOT_WAITED = ", without wait() for its isend to"


def note_file(folder: str | Path, rank: int) -> Path:
    """Where a rank says what it waits for."""
    return Path(folder) / f"rank{rank}.waits"


class Note:
    """A line that another process can read at any moment, kept in a small shared file."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(NOTE_BYTES))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), NOTE_BYTES)

    @contextmanager
    def waiting(self, text: str):
        """Say so inside the block, and nothing after it."""
        self.say(text)
        yield
        # Not after an error: it then says what the rank was waiting for.
        self.say("")

    def say(self, text: str) -> None:
        """From now on the line is this one, cut at NOTE_BYTES."""
        self._map[:] = text.encode()[:NOTE_BYTES].ljust(NOTE_BYTES, b"\0")


def read_note(path: Path) -> str:
    """What the rank says it waits for; empty when it does not wait, or has not begun."""
    return path.read_bytes().rstrip(b"\0").decode(errors="replace") if path.exists() else ""


class TorchComm(Comm):
    """The communicator of a process in which `torch.distributed` is initialized."""

    def __init__(self, device: torch.device, note: Note) -> None:
        super().__init__(dist.get_rank(), dist.get_world_size(), device)
        self.steps: list[RankStep] = []
        self._note = note
        self._batched = dist.get_backend() == "nccl"
        self._batch = _Batch()
        self._sends: dict[int, tuple[int, weakref.ref]] = {}
        """What was sent and not waited for, by its step: to whom, and what the rank would wait with."""
        self._groups: dict[Group, dist.ProcessGroup | None] = {None: None}

    def finish(self) -> None:
        """Let go of messages that nobody waited for, and say which. Called when the rank's function has returned."""
        dst = next((dst for dst, _ in self._sends.values()), None)
        self._note.say("" if dst is None else f"{NOT_WAITED} rank {dst}")
        self._issue()

    def _start_send(self, tensor: torch.Tensor, dst: int) -> Callable[[], None]:
        # A copy, because the sender may go on and change the tensor before it is gone.
        message = tensor.detach().clone(memory_format=torch.contiguous_format)
        number = self._step(RankStep("send", dst, form_of(tensor)))
        wait = self._post(dist.isend, message, dst)

        def finish() -> None:
            # The message has to stay alive until it has gone.
            self._sends.pop(number)
            self._wait(wait, f"for rank {dst} to receive", message)
            self._step(RankStep("wait", number=number))

        self._sends[number] = dst, weakref.ref(finish)
        return finish

    def _start_recv(self, tensor: torch.Tensor, src: int) -> Callable[[], None]:
        into = torch.empty_like(tensor.detach(), memory_format=torch.contiguous_format)
        number = self._step(RankStep("recv", src, form_of(tensor)))
        wait = self._post(dist.irecv, into, src)

        def finish() -> None:
            self._wait(wait, f"for a message from rank {src}")
            self._step(RankStep("wait", number=number))
            tensor.detach().copy_(into)

        return finish

    def _group(self, ranks: tuple[int, ...]) -> Comm:
        if ranks not in self._groups:
            # Only the ranks of the group come here, so they must not wait for the rest.
            with self._note.waiting(f"in new_group({list(ranks)}) for the others"):
                self._groups[ranks] = dist.new_group(list(ranks), use_local_synchronization=True)
        return GroupComm(self, ranks)

    def _barrier(self, group: Group) -> None:
        self._step(RankStep("barrier", group=group))
        self._issue()
        with self._note.waiting("at a barrier for the others"):
            dist.barrier(self._groups[group])

    def _mark(self, label: str, held_bytes: int | None) -> None:
        self._step(RankStep("mark", label=label, held_bytes=held_bytes))
        self._issue()
        with self._note.waiting(f"at the mark {label!r} for the others"):
            dist.barrier()

    def _start_collective(self, offer: Offer) -> Callable[[], None]:
        number = self._step(RankStep("meet", offer=offer_without_values(offer)))
        self._issue()
        work, read = start(offer, self._groups[offer.group])

        def finish() -> None:
            self._wait(work.wait, f"in {offer.name} for the others")
            self._step(RankStep("wait", number=number))
            for into, result in zip(offer.outputs, read()):
                into.detach().copy_(result)

        return finish

    def _compute(self, seconds: float) -> None:
        self._step(RankStep("compute", seconds=seconds))

    def _step(self, step: RankStep) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def _wait(self, wait: Callable[[], object], text: str, *kept: torch.Tensor) -> None:
        # gloo drops a message whose Work nobody holds any more: its receiver waits for ever.
        dropped = next((dst for dst, finish in self._sends.values() if finish() is None), None)
        with self._note.waiting(text if dropped is None else f"{text}{NOT_WAITED} rank {dropped}"):
            wait()

    def _post(self, call: Callable, tensor: torch.Tensor, peer: int) -> Callable[[], object]:
        """Start a message; on NCCL, together with those that follow up to the first wait.

        There, two ranks that both send before they receive would hang: a batch has no order.
        """
        if not self._batched:
            return call(tensor, peer).wait
        batch = self._batch
        batch.messages.append(dist.P2POp(call, tensor, peer))

        def wait() -> None:
            if batch is self._batch:
                self._issue()
            for work in batch.works:
                work.wait()

        return wait

    def _issue(self) -> None:
        batch, self._batch = self._batch, _Batch()
        if batch.messages:
            batch.works = dist.batch_isend_irecv(batch.messages)


@dataclass
class _Batch:
    """Messages that start together."""

    messages: list[dist.P2POp] = field(default_factory=list)
    works: list[dist.Work] = field(default_factory=list)
