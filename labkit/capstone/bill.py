"""What a script costs at a size where nobody has to run it: a step on fake tensors, metered.

The same code as in the tiny run is executed; only that tensors hold no data. Two steps are run, and the second is
billed for each: in the first one an optimizer makes its states. What that takes beyond the second is paid for once, as
`setup` is.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from labkit.capstone.cost import Costs, Step
from labkit.capstone.fake import FakeRun
from labkit.capstone.given import as_given
from labkit.capstone.machine import MACHINES, Machine
from labkit.capstone.memories import Memories
from labkit.capstone.script import Script, load
from labkit.capstone.size import BILLION, Size
from labkit.meters.memory.fake import fake_tensors
from labkit.meters.memory.track import tracked
from labkit.meters.memory.tracker import Tracker
from labkit.spec import MiB


@dataclass(frozen=True)
class Bill:
    """One step of a script at a size, on one card of a machine.

    peak_bytes: by category, each rounded up to 1 MiB. sequences: that the card asks for in a step. flops: by dtype.
    unsupported: dtypes of products that the machine's cards cannot run. operations: of the step, in their order.
    matrix_flops: of products of two matrices. unwritten: weights of which the step writes less than there is.
    prepared, first: the operations of `setup` and of the first step. worked_on: the memories of all these, of `setup`,
    the first step and the step. held_bytes: the peak of the step alone, exactly; kept_bytes: what is there after it.
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
    prepared: tuple[Step, ...] = field(default=(), repr=False, compare=False)
    first: tuple[Step, ...] = field(default=(), repr=False, compare=False)
    worked_on: tuple[tuple[tuple[int, ...], ...], ...] = field(default=((), (), ()), repr=False, compare=False)
    held_bytes: int = field(default=0, compare=False)
    kept_bytes: int = field(default=0, compare=False)

    @property
    def total_peak_bytes(self) -> int:
        return sum(self.peak_bytes.values())


def bill(script: Script, size: Size = BILLION, machine: Machine | None = None, rank: int = 0) -> Bill:
    """Run two steps of the script on tensors without data. machine: in place of the script's own.

    Raises what the script raises, RuleBroken (`broken`) among it.
    """
    machine = machine or MACHINES[script.machine]
    memories = Memories()
    prepared, first, costs = (Costs(machine, memories=memories) for _ in range(3))
    tracker = Tracker("cpu")
    with as_given(), _collected(), fake_tensors(), tracked(tracker) as profile:
        setup, step = load(script)
        run = FakeRun(size, prepared, tracker, rank, machine.n_cards)
        with prepared:
            state = setup(run)
        run._check_weights()
        run._label_all()
        for number, counting in enumerate((first, costs)):
            run._put("_costs", counting)
            counting.watch(_weights(run).values())
            begin = len(tracker.ops) - 1
            with counting:
                served = run._one_step(step, state, number)
            held_bytes = max(tracker.curve[begin:])
            gc.collect()
            run._check_weights()
            run._label_all()
        unwritten = tuple(name for name, one in _weights(run).items() if not costs.written.covers(one))
        peak = profile.peak_by_category
        kept_bytes = sum(record.n_bytes for record in tracker.live_records())
    return Bill(
        machine.name,
        size,
        prepared.seconds + max(0.0, first.seconds - costs.seconds),
        costs.seconds,
        {name: -(-n_bytes // MiB) * MiB for name, n_bytes in peak.items()},
        served,
        dict(costs.flops),
        costs.n_bytes,
        costs.host_bytes,
        costs.link_bytes,
        tuple(sorted(prepared.unsupported | first.unsupported | costs.unsupported)),
        costs.matrix_flops,
        unwritten,
        tuple(costs.operations),
        tuple(prepared.operations),
        tuple(first.operations),
        tuple(tuple(one.worked_on) for one in (prepared, first, costs)),
        held_bytes,
        kept_bytes,
    )


def _weights(run: FakeRun) -> dict[str, Tensor]:
    """The model's weights by name, as the memory that they lie in now."""
    return {name: one.detach() for name, one in run._weights.items()}


@contextmanager
def set_aside() -> Iterator[None]:
    """Have Python's collector pass over what is there already: to look through it takes as long as a bill does.

    Where a block around this one has set things aside, or the whole process has, all of it stays so afterwards.
    """
    has_frozen = gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not has_frozen:
            gc.unfreeze()


@contextmanager
def _collected() -> Iterator[None]:
    """Have Python's collector free circles at known moments alone: the peak would hang on when it runs."""
    was_on = gc.isenabled()
    gc.disable()
    torch.manual_seed(0)
    # It prints a traceback of its own for each operation on shapes that do not fit; the error itself says enough.
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with set_aside():
            yield
    finally:
        log.setLevel(level)
        if was_on:
            gc.enable()
