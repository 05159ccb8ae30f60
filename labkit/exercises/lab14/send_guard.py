"""Lab 14: a communicator that notices what simulated ranks forgive, and real ones do not.

Simulated ranks and the grader's copy a tensor at `isend` and write into one at the wait of `irecv`. A program that
changes the one, or reads the other, before its wait() has the right values there; over a real network it is a race. So
are two messages on their way into the same memory.
"""

from __future__ import annotations

from typing import Any

import torch

from labkit.ranks import Comm, CommError, Work
from labkit.tree import bytes_of

RETURNS_NOTHING = "comm.recv returns nothing: it writes what arrives into the tensor that it is given"


class Sending:
    """A message under way. `work` is the communicator's own; what is sent has to stay as it is until wait()."""

    def __init__(self, rank: int, dst: int, tensor: torch.Tensor, work: Work) -> None:
        self._what = f"rank {rank} changed the tensor that it was sending to rank {dst}"
        self._tensor, self._then, self._work = tensor, _bits(tensor).clone(), work
        self._under_way = True

    def wait(self) -> None:
        """Wait for the transfer. Raises CommError where the tensor is no longer what it was at isend."""
        self.check()
        self._under_way = False
        self._work.wait()

    def check(self) -> None:
        """Raises CommError where nobody has waited yet and the tensor has changed."""
        if self._under_way and not torch.equal(_bits(self._tensor), self._then):
            raise CommError(f"{self._what}: from isend until work.wait() it has to stay as it is")


class Receiving:
    """A message on its way into a tensor, which belongs to it until wait()."""

    def __init__(self, tensor: torch.Tensor, work: Work) -> None:
        self.tensor, self._work, self.under_way = tensor, work, True

    def wait(self) -> None:
        """Wait for the transfer."""
        self.under_way = False
        self._work.wait()


class Nothing:
    """What `recv` returns. Whoever calculates with it is told that it is nothing."""

    @classmethod
    def __torch_function__(cls, *args: object, **kwargs: object) -> None:
        raise CommError(RETURNS_NOTHING)


class SendGuard:
    """`comm`, which checks that what is given to isend stays as it is, and spoils what is given to irecv until its
    wait: NaN, or for whole numbers the largest of the dtype. No two messages may come into the same memory at once."""

    def __init__(self, comm: Comm) -> None:
        self._comm, self._sendings, self._receivings = comm, [], []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def recv(self, *args: Any, **kwargs: Any) -> Nothing:
        """Receive, as the communicator does. Raises CommError without a tensor to receive into."""
        if not args and "tensor" not in kwargs:
            raise CommError(f"{RETURNS_NOTHING}, as in comm.recv(got, src)")
        self._check_is_free(args[0] if args else kwargs["tensor"])
        self._comm.recv(*args, **kwargs)
        return Nothing()

    def isend(self, tensor: torch.Tensor, dst: int) -> Sending:
        """Start to send, as the communicator does."""
        sending = Sending(self._comm.rank, dst, tensor, self._comm.isend(tensor, dst))
        self._sendings.append(sending)
        return sending

    def irecv(self, tensor: torch.Tensor, src: int) -> Work:
        """Start to receive, as the communicator does. Raises CommError where another message is on its way there."""
        self._check_is_free(tensor)
        receiving = Receiving(tensor, self._comm.irecv(tensor, src))
        tensor.detach().fill_(torch.nan if tensor.is_floating_point() else torch.iinfo(tensor.dtype).max)
        self._receivings.append(receiving)
        return receiving

    def _check_is_free(self, tensor: object) -> None:
        self._receivings = [one for one in self._receivings if one.under_way]
        if isinstance(tensor, torch.Tensor) and any(_overlap(one.tensor, tensor) for one in self._receivings):
            raise CommError(
                f"rank {self._comm.rank} receives into a tensor into which an earlier irecv still receives: until "
                f"work.wait() it belongs to that message"
            )

    def check(self) -> None:
        """At the end: raises CommError for a tensor that changed and was never waited for."""
        for sending in self._sendings:
            sending.check()


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors share memory. Where one has gaps, as a column of a matrix, only the beginnings count."""
    if not one.numel() or not other.numel():
        return False
    begin, other_begin = one.data_ptr(), other.data_ptr()
    if not (one.is_contiguous() and other.is_contiguous()):
        return begin == other_begin
    return begin < other_begin + other.nbytes and other_begin < begin + one.nbytes


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """What is in a tensor, so that a NaN is equal to itself."""
    return bytes_of(tensor.detach())
