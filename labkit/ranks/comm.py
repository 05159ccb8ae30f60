"""The communicator: one rank's end of the network, with the names of torch.distributed, whatever runs the ranks.

This class checks what it is asked for, tells the meters, and leaves the transfer to a backend. Two are beside it,
simulated ranks (`simulated.py`) and processes on gloo or NCCL (`real.py`). The third is the grader's:

*Routed.* Each rank is a process that may do nothing but read and write one channel, and a trusted router holds the
other ends. The backend implements the `_` methods below by requests on the channel. The router keeps one
`labkit.ranks.network.Network`, calls it with the rank that *owns the channel*, never one that a message names, and
answers a rank that waits as soon as its `Need`s are met. So bytes, rounds and deadlocks are counted by the code that
the simulator uses, in a process the answer cannot reach.

A group of ranks has a communicator of its own (`new_group`), which goes through that of all ranks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from labkit.meters.comm import quietly, started
from labkit.meters.memory import held_now
from labkit.ranks.arguments import in_chunks, of_splits, tensor_of, tensors_like
from labkit.ranks.collectives import Group, Offer, op_name
from labkit.ranks.errors import CommError
from labkit.ranks.marks import MAX_LABEL, is_label


class Work:
    """A transfer under way; wait() returns when it is done."""

    def __init__(self, finish: Callable[[], None]) -> None:
        self._finish: Callable[[], None] | None = finish

    def wait(self) -> None:
        """Wait for the transfer: only then is a received tensor there."""
        if self._finish is not None:
            finish, self._finish = self._finish, None
            finish()


class Comm(ABC):
    """One rank of `world_size`. device: where its tensors belong. global_rank: its number among all ranks, which is
    another one where this is the communicator of a group.

    Messages from one rank to another arrive in the order in which they were sent. `send` returns once its receiver
    has asked for the message. Every rank calls the same collectives in the same order. Mistakes raise CommError.

    One mistake does not, with any backend: to touch a tensor between `isend`, `irecv` or a collective with `async_op`
    and its wait(). What is sent was copied at the call and what arrives is written at the wait, so the tensor's old
    values are read until then, and what is written into it is lost. With torch.distributed itself it would be a race.
    """

    def __init__(self, rank: int, world_size: int, device: torch.device | str = "cpu") -> None:
        self.rank = self.global_rank = rank
        self.world_size = world_size
        self.device = torch.device(device)

    def send(self, tensor: torch.Tensor, dst: int) -> None:
        """Send `tensor` to rank `dst`, and wait until that rank receives it."""
        self._send("send", tensor, dst).wait()

    def recv(self, tensor: torch.Tensor, src: int) -> None:
        """Wait for a message from rank `src` and write it into `tensor`."""
        self._recv("recv", tensor, src).wait()

    def isend(self, tensor: torch.Tensor, dst: int) -> Work:
        """Start to send `tensor`, as it is now, to rank `dst`."""
        return self._send("isend", tensor, dst)

    def irecv(self, tensor: torch.Tensor, src: int) -> Work:
        """Start to receive a message from rank `src`; `tensor` holds it after wait()."""
        return self._recv("irecv", tensor, src)

    def barrier(self) -> None:
        """Wait until every rank has come here as often as this one."""
        done = started(self.global_rank, "barrier", ())
        with _unseen():
            self._barrier(None)
        done()

    def mark(self, label: str) -> None:
        """Halt here until all ranks, those of other groups too, have come to the moment of this name, and note what
        each of them holds (`Traffic.moments`). It is for who measures: nothing is sent, and no time goes by.

        What is held is counted by the memory meter that is open, if one is: tensors that were made in its block, and
        much of Python's memory. A message that is under way counts too: it lies in a buffer of its sender, and what a
        collective brings in one of who has not waited for it.
        """
        if not is_label(label):
            raise CommError(f"rank {self.rank} marks {label!r}: a moment's name has 1 to {MAX_LABEL} characters")
        held = held_now()
        with _unseen():
            self._mark(label, held and held.n_bytes)

    def new_group(self, ranks: Sequence[int]) -> Comm | None:
        """The communicator of these ranks, numbered in ascending order; None on a rank that is not among them.

        Its collectives are between them alone. Messages between two ranks go over one link, whichever communicator
        sends them. Groups that share ranks have to be made in the same order on all of them. Nothing is sent for it.
        """
        wish = f"rank {self.rank} asks for the group {ranks!r}"
        if isinstance(ranks, str) or not hasattr(ranks, "__iter__"):
            raise CommError(f"{wish}: it must be a list of ranks")
        members = sorted(self._check_rank(one, wish) for one in ranks)
        if len(set(members)) != len(members):
            raise CommError(f"{wish}, in which a rank comes twice")
        return self._group(tuple(members)) if self.rank in members else None

    def all_reduce(self, tensor: torch.Tensor, op: Any = "sum", async_op: bool = False) -> Work | None:
        """Replace `tensor` by the sum (or "avg", "product", "min", "max") over all ranks, with the same bits on all.

        op: one of these words, or a `torch.distributed.ReduceOp`. async_op: return a Work at once.
        """
        tensor_of(self.rank, tensor, "all_reduce")
        return self._meet(Offer("all_reduce", (tensor,), (tensor,), op=op_name(op, tensor, self.rank)), async_op)

    def broadcast(self, tensor: torch.Tensor, src: int, async_op: bool = False) -> Work | None:
        """Replace `tensor` on every rank by that of rank `src`."""
        tensor_of(self.rank, tensor, "broadcast")
        src = self._check_rank(src, f"rank {self.rank} asks for a broadcast from rank {src}")
        return self._meet(Offer("broadcast", (tensor,), (tensor,), src=src), async_op)

    def all_gather(
        self, tensor_list: Sequence[torch.Tensor], tensor: torch.Tensor, async_op: bool = False
    ) -> Work | None:
        """Write the `tensor` of rank r into `tensor_list[r]`, on every rank. All have the same shape and dtype."""
        tensor_of(self.rank, tensor, "all_gather", ", and the list comes first")
        tensors_like(self.rank, self.world_size, tensor_list, tensor, "all_gather into")
        return self._meet(Offer("all_gather", (tensor,), tuple(tensor_list)), async_op)

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, async_op: bool = False) -> Work | None:
        """Write the `input` of rank 0 into the first of n equal parts of `output`, that of rank 1 into the second, ...

        output: n times as long as `input` in dimension 0, or with a dimension of n before those of `input`.
        """
        parts = in_chunks(self.rank, self.world_size, output, input, "all_gather_single", "output", "input")
        return self._meet(Offer("all_gather", (input,), parts), async_op)

    all_gather_into_tensor = all_gather_single
    """Its name before PyTorch 2.13."""

    def reduce_scatter(
        self, output: torch.Tensor, input_list: Sequence[torch.Tensor], op: Any = "sum", async_op: bool = False
    ) -> Work | None:
        """Write into `output` of rank r the sum (or another `op`) of `input_list[r]` over all ranks."""
        tensor_of(self.rank, output, "reduce_scatter")
        tensors_like(self.rank, self.world_size, input_list, output, "reduce_scatter of")
        name = op_name(op, output, self.rank)
        return self._meet(Offer("reduce_scatter", tuple(input_list), (output,), op=name), async_op)

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, op: Any = "sum", async_op: bool = False
    ) -> Work | None:
        """Cut `input` into n equal parts and write into `output` of rank r the sum (or another `op`) of the r-th ones.

        input: n times as long as `output` in dimension 0, or with a dimension of n before those of `output`.
        """
        parts = in_chunks(self.rank, self.world_size, input, output, "reduce_scatter_single", "input", "output")
        name = op_name(op, output, self.rank)
        return self._meet(Offer("reduce_scatter", parts, (output,), op=name), async_op)

    reduce_scatter_tensor = reduce_scatter_single
    """Its name before PyTorch 2.13."""

    def all_to_all(
        self,
        output_tensor_list: Sequence[torch.Tensor],
        input_tensor_list: Sequence[torch.Tensor],
        async_op: bool = False,
    ) -> Work | None:
        """Send `input_tensor_list[r]` to rank r, and write what rank r sends into `output_tensor_list[r]`.

        Shapes may differ from rank to rank, but each has to fit where it is received.
        """
        for tensors, preposition in ((output_tensor_list, "into"), (input_tensor_list, "of")):
            tensors_like(self.rank, self.world_size, tensors, None, f"all_to_all {preposition}")
        return self._meet(Offer("all_to_all", tuple(input_tensor_list), tuple(output_tensor_list)), async_op)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int] | None = None,
        input_split_sizes: Sequence[int] | None = None,
        async_op: bool = False,
    ) -> Work | None:
        """`all_to_all` of the pieces of `input` into those of `output`, one after the other in dimension 0.

        The sizes say how long each piece is, one for each rank; without them they are equal.
        """
        n = self.world_size
        outputs = of_splits(self.rank, n, output, output_split_sizes, "output")
        inputs = of_splits(self.rank, n, input, input_split_sizes, "input")
        return self._meet(Offer("all_to_all", inputs, outputs), async_op)

    def compute(self, seconds: float) -> None:
        """Let this rank compute for so long on the virtual clock. Real ranks have a clock that moves by itself."""
        seconds = float(seconds)
        if not seconds >= 0:
            raise ValueError(f"a rank cannot compute for {seconds:g} seconds")
        self._compute(seconds)

    @abstractmethod
    def _start_send(self, tensor: torch.Tensor, dst: int) -> Callable[[], None]:
        """Start to send a tensor; what comes back is called to wait."""

    @abstractmethod
    def _start_recv(self, tensor: torch.Tensor, src: int) -> Callable[[], None]:
        """Start to receive; what comes back is called to wait, and writes into `tensor`."""

    @abstractmethod
    def _barrier(self, group: Group) -> None:
        """Return once all ranks, or those of the group, have come here."""

    @abstractmethod
    def _mark(self, label: str, held_bytes: int | None) -> None:
        """Return once all ranks have come to this moment."""

    @abstractmethod
    def _group(self, ranks: tuple[int, ...]) -> Comm:
        """The communicator of these ranks, ascending, of which this one is one."""

    @abstractmethod
    def _start_collective(self, offer: Offer) -> Callable[[], None]:
        """Start a collective; what comes back is called to wait, and writes into `offer.outputs`."""

    @abstractmethod
    def _compute(self, seconds: float) -> None:
        """Let the rank's clock move on."""

    def _send(self, name: str, tensor: torch.Tensor, dst: int) -> Work:
        dst = self._check_message(tensor, "send", "to", dst)
        done = started(self.global_rank, name, (tensor,), self._global(dst))
        with _unseen():
            return _work(self._start_send(tensor, dst), done)

    def _recv(self, name: str, tensor: torch.Tensor, src: int) -> Work:
        src = self._check_message(tensor, "receive", "from", src)
        done = started(self.global_rank, name, (tensor,), self._global(src))
        with _unseen():
            return _work(self._start_recv(tensor, src), done)

    def _meet(self, offer: Offer, async_op: bool) -> Work | None:
        src = None if offer.src is None else self._global(offer.src)
        done = started(self.global_rank, offer.name, offer.inputs, src)
        with _unseen():
            work = _work(self._start_collective(offer), done)
        if async_op:
            return work
        work.wait()
        return None

    def _global(self, rank: int) -> int:
        """The number among all ranks of the one that has this number here."""
        return rank

    def _check_message(self, tensor: object, verb: str, preposition: str, whom: int) -> int:
        if not isinstance(tensor, torch.Tensor):
            raise CommError(f"rank {self.rank} tries to {verb} a {type(tensor).__name__}: it must be a tensor")
        other = self._check_rank(whom, f"rank {self.rank} tries to {verb} {preposition} rank {whom}")
        if other == self.rank:
            raise CommError(f"rank {self.rank} tries to {verb} {preposition} itself: a message needs two ranks")
        return other

    def _check_rank(self, whom: object, wish: str) -> int:
        other = whom.__index__() if hasattr(whom, "__index__") else -1
        if not 0 <= other < self.world_size:
            last = self.world_size - 1
            ranks = f"the ranks are the whole numbers 0 to {last}" if last else "there is only rank 0"
            raise CommError(f"{wish}, but {ranks}")
        return other


@contextmanager
def _unseen() -> Iterator[None]:
    """What a communicator does to carry out a call is none of the rank's own operations: no meter sees it."""
    with quietly(), _disable_current_modes():
        yield


def _work(finish: Callable[[], None], done: Callable[[], None]) -> Work:
    def both() -> None:
        with _unseen():
            finish()
        done()

    return Work(both)
