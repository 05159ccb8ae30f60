"""Lab 14: a communicator that notices when a rank changes a tensor that it is still sending.

Simulated ranks and the grader's copy a tensor at `isend`, so there such a program has the right values; over a real
network it is a race.
"""

from __future__ import annotations

from typing import Any

import torch

from labkit.ranks import Comm, CommError, Work


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


class SendGuard:
    """`comm`, which checks that what is given to isend stays as it is."""

    def __init__(self, comm: Comm) -> None:
        self._comm, self._sendings = comm, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def isend(self, tensor: torch.Tensor, dst: int) -> Sending:
        """Start to send, as the communicator does."""
        sending = Sending(self._comm.rank, dst, tensor, self._comm.isend(tensor, dst))
        self._sendings.append(sending)
        return sending

    def check(self) -> None:
        """At the end: raises CommError for a tensor that changed and was never waited for."""
        for sending in self._sendings:
            sending.check()


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """What is in a tensor, so that a NaN is equal to itself."""
    return tensor.detach().reshape(-1).view(torch.uint8)
