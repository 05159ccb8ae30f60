"""What a script costs at a size where nobody has to run it: a step on fake tensors, metered.

The same code as in the tiny run is executed; only that tensors hold no data. Two steps are run, and the second is
billed: in the first one an optimizer makes its states.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from labkit.capstone.cost import Costs, Step, storage_of
from labkit.capstone.fake import FakeRun
from labkit.capstone.machine import MACHINES, Machine
from labkit.capstone.run import RuleBroken
from labkit.capstone.script import Script, load
from labkit.capstone.size import BILLION, Size
from labkit.meters.memory.fake import fake_tensors
from labkit.meters.memory.track import tracked
from labkit.meters.memory.tracker import Tracker
from labkit.spec import MiB

N_STEPS = 2


@dataclass(frozen=True)
class Bill:
    """One step of a script at a size, on one card of a machine.

    peak_bytes: by category, each rounded up to 1 MiB. sequences: that the card asks for in a step. flops: by dtype.
    unsupported: dtypes of products that the machine's cards cannot run. operations: of the step, in their order.
    matrix_flops: of products of two matrices. unwritten: weights of which the step writes less than there is.
    """

    machine: str
    size: Size
    setup_s: float
    step_s: float
    peak_bytes: Mapping[str, int]
    sequences: int
    flops: Mapping[str, int]
    n_bytes: int
    host_bytes: int
    link_bytes: int
    unsupported: tuple[str, ...] = ()
    matrix_flops: int = 0
    unwritten: tuple[str, ...] = ()
    operations: tuple[Step, ...] = field(default=(), repr=False, compare=False)

    @property
    def total_peak_bytes(self) -> int:
        return sum(self.peak_bytes.values())


def bill(script: Script, size: Size = BILLION, machine: Machine | None = None, rank: int = 0) -> Bill:
    """Run two steps of the script on tensors without data. machine: in place of the script's own.

    Raises what the script raises, RuleBroken among it.
    """
    machine = machine or MACHINES[script.machine]
    first, costs = Costs(machine), Costs(machine)
    tracker = Tracker("cpu")
    with _collected(), fake_tensors(), tracked(tracker) as profile:
        setup, step = load(script)
        run = FakeRun(size, first, tracker, rank, machine.n_cards)
        with first:
            state = setup(run)
        run._label_all()
        setup_s = first.seconds
        for number in range(N_STEPS):
            counting = costs if number == N_STEPS - 1 else first
            run._put("_costs", counting)
            weights = _weights(run)
            counting.watch(weights.values())
            with counting:
                served = run._one_step(step, state, number)
            gc.collect()
            run._label_all()
        unwritten = tuple(name for name, one in weights.items() if costs.written.get(storage_of(one), 0) < one.numel())
        peak = profile.peak_by_category
    if run._model is None:
        raise RuleBroken("the script never asked for run.model(): there is nothing that it trains")
    return Bill(
        machine.name,
        size,
        setup_s,
        costs.seconds,
        {name: -(-n_bytes // MiB) * MiB for name, n_bytes in peak.items()},
        served,
        dict(costs.flops),
        costs.n_bytes,
        costs.host_bytes,
        costs.link_bytes,
        tuple(sorted(costs.unsupported | first.unsupported)),
        costs.matrix_flops,
        unwritten,
        tuple(costs.operations),
    )


def _weights(run: FakeRun) -> dict[str, Tensor]:
    """The model's weights by name, as the memory that they lie in now."""
    return {} if run._model is None else {name: one.detach() for name, one in run._model.named_parameters()}


@contextmanager
def _collected() -> Iterator[None]:
    """Have Python's collector free circles at known moments alone: the peak would hang on when it runs.

    What is there already is not looked through again each time, which takes as long as half a step.
    """
    was_on, has_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.collect()
    gc.disable()
    if not has_frozen:
        gc.freeze()
    torch.manual_seed(0)
    try:
        yield
    finally:
        if not has_frozen:
            gc.unfreeze()
        if was_on:
            gc.enable()
