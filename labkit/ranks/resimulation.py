"""What a real rank did, step by step, done again on the simulator: so that both kinds of ranks are counted alike.

The steps hold shapes and dtypes and no values; its tensors have no memory. The order in which a rank's
own steps happened is kept, and that of different ranks follows from their messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from labkit.ranks.cluster import Cluster
from labkit.ranks.collectives import Group, Offer, without_values
from labkit.ranks.comm import Comm
from labkit.ranks.simulated import simulate
from labkit.ranks.traffic import Traffic

Form = tuple[tuple[int, ...], torch.dtype]


@dataclass(frozen=True)
class RankStep:
    """One thing that a rank did. kind: "send", "recv", "meet", "barrier", "mark", "compute", or "wait" for the step
    `number`.

    RankStep("send", peer=1, form=((1024,), torch.float32))
    """

    kind: str
    peer: int = 0
    form: Form | None = None
    offer: Offer | None = None
    number: int = 0
    seconds: float = 0.0
    group: Group = None
    label: str = ""
    held_bytes: int | None = None


def form_of(tensor: torch.Tensor) -> Form:
    """Shape and dtype."""
    return tuple(tensor.shape), tensor.dtype


def offer_without_values(offer: Offer) -> Offer:
    """The same collective with tensors that have shape and dtype only."""
    inputs, outputs = (tuple(map(without_values, many)) for many in (offer.inputs, offer.outputs))
    return replace(offer, inputs=inputs, outputs=outputs)


def resimulate(steps: Sequence[Sequence[RankStep]], cluster: Cluster | None = None) -> Traffic:
    """The traffic of ranks that took these steps. Raises CommError where they did not fit together, and it went
    unnoticed: a shape that differs at equal size, a message that nobody received.
    """
    return simulate(lambda comm: _again(comm, steps[comm.rank]), len(steps), cluster)[1]


def _again(comm: Comm, steps: Sequence[RankStep]) -> None:
    waits: dict[int, Callable[[], None]] = {}
    for number, step in enumerate(steps):
        if step.kind == "send":
            waits[number] = comm._start_send(_empty(step.form), step.peer)
        elif step.kind == "recv":
            waits[number] = comm._start_recv(_empty(step.form), step.peer)
        elif step.kind == "meet":
            waits[number] = comm._start_collective(step.offer)
        elif step.kind == "wait":
            waits.pop(step.number)()
        elif step.kind == "barrier":
            comm._barrier(step.group)
        elif step.kind == "mark":
            comm._mark(step.label, step.held_bytes)
        else:
            comm._compute(step.seconds)


def _empty(form: Form) -> torch.Tensor:
    shape, dtype = form
    return torch.empty(shape, dtype=dtype, device="meta")
