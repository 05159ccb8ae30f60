"""What a block costs on a machine: its operations in order, their FLOPs and bytes, and their time on the roofline.

An operation takes as long as the slower of two things: its products at the card's rate for their dtype, and the bytes
of the tensors that it reads and writes at the rate of the card's memory. Operations follow one another; nothing
overlaps. What is copied to the host or sent to other cards is added by whoever does it (`Costs.copied`, `Costs.sent`).

A script that reads a value out of a tensor ends here: what it learned in Python would be on no bill.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from labkit.capstone.broken import RuleBroken
from labkit.capstone.machine import Machine
from labkit.capstone.memories import Memories
from labkit.capstone.written import Written, storage_of
from labkit.meters.dispatch import Meter
from labkit.meters.memory.storages import tensors_in
from labkit.meters.ops import flop_formula

_NO_BYTES = ("empty", "new_empty", "_local_scalar_dense", "detach", "lift_fresh")
_ONLY_WRITES = ("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "_foreach_zero_", "_foreach_copy_")
_PICKS = ("embedding", "gather", "index", "index_select", "nll_loss_forward")
"""Operations that read of their first tensor only what they pick from it."""
_BY_WEIGHTS = ("mm", "addmm", "addmm_")
"""Products of two matrices, as those of tokens and weights are; attention multiplies batches of them."""

Operand = tuple[torch.Size, torch.dtype, bool]
"""A tensor's shape and dtype, and whether its memory holds fewer elements than it shows, as that of `expand` does. An
operation that reads such a one is cheaper."""
Step = tuple[str, list[Operand]]
"""An operation as it is compared: its name, and every tensor that goes in, or else comes out."""

_NESTED = (list, tuple)
_DEVICE = torch.ops.prim.device.default
_READS = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default)
_MAY_READ = str(Path(torch.optim.__file__).parent)
"""PyTorch's optimizers look at their own count of steps, and tell nobody."""


class Costs(Meter):
    """Counts while it is entered. machine: without one, operations are listed and nothing is counted.

    seconds: on the machine. unsupported: dtypes of products that it cannot run. operations: in their order, calls of
    the run's own among them; worked_on: the memories of each, by number, where there is a machine. matrix_flops: of
    products of two matrices. written: of the memories that `watch` was told of, and of new ones.
    """

    def __init__(
        self, machine: Machine | None = None, may_read: bool = False, memories: Memories | None = None
    ) -> None:
        """may_read: whether values may be read out of tensors: no script's, but a loss that a `Trainer` logs. memories:
        to go on numbering them; its own otherwise."""
        super().__init__()
        self.machine, self.may_read = machine, may_read
        self.operations: list[Step] = []
        self.worked_on: list[tuple[int, ...]] = []
        self._memories = memories or Memories()
        self.flops: Counter[str] = Counter()
        self.n_bytes = self.host_bytes = self.link_bytes = self.matrix_flops = 0
        self.written = Written()
        self.seconds = 0.0
        self.unsupported: set[str] = set()
        self.is_paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What the engine itself does is no cost of the script's."""
        before, self.is_paused = self.is_paused, True
        try:
            yield
        finally:
            self.is_paused = before

    def called(self, name: str, tensor: Tensor) -> None:
        """The run itself does something with a tensor: it is listed as operations are."""
        self._list(name, [_operand(tensor)], [tensor])

    def watch(self, tensors: Iterable[Tensor]) -> None:
        """Note from now on what is written into these."""
        self.written = Written(tensors)

    def copied(self, n_bytes: int) -> None:
        """Bytes have gone between card and host."""
        self.host_bytes += n_bytes
        if self.machine:
            self.seconds += n_bytes / self.machine.host_bytes_per_s

    def sent(self, n_bytes: float, n_messages: int) -> None:
        """A card has sent so much to its neighbour in the ring, one message after the other."""
        self.link_bytes += round(n_bytes)
        if self.machine and n_messages:
            self.seconds += n_bytes / self.machine.link_bytes_per_s + n_messages * self.machine.latency_s

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.is_paused or func is _DEVICE:
            return func(*args, **kwargs)
        if func in _READS and not (self.may_read or sys._getframe(1).f_code.co_filename.startswith(_MAY_READ)):
            raise RuleBroken("a value is read out of a tensor, so what happens next could depend on it", "data")
        used: list[Tensor] = []
        for one in (*args, *kwargs.values()) if kwargs else args:
            # A training has a million operations, and this is what they wait for: most arguments are tensors and
            # numbers.
            if isinstance(one, Tensor):
                used.append(one)
            elif isinstance(one, _NESTED):
                tensors_in(one, used)
        # Before the operation, which may give what it works on another shape.
        operands = [(one.shape, one.dtype, 0 in one.stride()) for one in used]
        result = func(*args, **kwargs)
        name = _name(func)
        if name != "detach":
            # A parameter is made with one more of these where tensors hold no data.
            made = () if used else tensors_in(result, [])
            self._list(name, operands or [_operand(one) for one in made], used or made)
        if self.machine is not None:
            self._count(func, name, args, kwargs, used, result)
        return result

    def _list(self, name: str, operands: list[Operand], tensors: Iterable[Tensor]) -> None:
        self.operations.append((name, operands))
        if self.machine is not None:
            self.worked_on.append(self._memories.of(tensors))

    def _count(self, func, name: str, args: Sequence, kwargs: dict, used: list[Tensor], result: object) -> None:
        formula = flop_formula(func._overloadpacket)
        flops = formula(*args, **kwargs, out_val=result) if formula else 0
        seconds = 0.0
        if flops:
            dtype = str(used[0].dtype).removeprefix("torch.")
            self.flops[dtype] += flops
            self.matrix_flops += flops * (name in _BY_WEIGHTS)
            rate = self.machine.flops_per_s.get(dtype)
            if rate is None:
                self.unsupported.add(dtype)
            else:
                seconds = flops / rate
        written = _written(func, args)
        new = _new(used, result)
        for one in (*used, *new):
            # Where tensors hold no data, devices are there that no machine has, and their memory is on no bill.
            if one.device.type != "cpu":
                where = "no device" if one.device.type == "meta" else f"another device, {one.device.type}"
                raise RuleBroken(f"a tensor is on {where}: whatever a script works on lies on the card")
        for one in new:
            self.written.begin(one)
        for one in written if name.startswith(_NO_BYTES) else (*written, *new):
            self.written.add(one)
        n_bytes = _moved_bytes(name, used, written, new)
        self.n_bytes += n_bytes
        self.seconds += max(seconds, n_bytes / self.machine.bytes_per_s)


def _operand(tensor: Tensor) -> Operand:
    return tensor.shape, tensor.dtype, 0 in tensor.stride()


@cache
def _name(func: torch._ops.OpOverload) -> str:
    return func._overloadpacket.__name__


def _new(used: list[Tensor], result: object) -> list[Tensor]:
    """What an operation made and is no view of what went in."""
    inputs = {storage_of(one) for one in used}
    return [one for one in tensors_in(result, []) if storage_of(one) not in inputs]


def _moved_bytes(name: str, used: list[Tensor], written: list[Tensor], new: list[Tensor]) -> int:
    """Bytes read and written; a view moves nothing."""
    if name.startswith(_NO_BYTES) or not (new or written):
        return 0
    read = list(used)
    if name in _ONLY_WRITES:
        read = [one for one in read if not any(one is other for other in written)]
    n_bytes = sum(map(_bytes, new)) + sum(map(_bytes, written))
    if name in _PICKS and read:
        picked = min(_bytes(read[0]), sum(map(_bytes, read[1:])) + sum(map(_bytes, new)))
        return n_bytes + picked + sum(map(_bytes, read[1:]))
    return n_bytes + sum(map(_bytes, read))


def _written(func, args: Sequence) -> list[Tensor]:
    """The tensors that an operation writes into."""
    if not func._schema.is_mutable:
        return []
    places = zip(args, func._schema.arguments, strict=False)
    return tensors_in([one for one, place in places if place.alias_info is not None and place.alias_info.is_write], [])


def _bytes(tensor: Tensor) -> int:
    """What is read of a tensor: where it repeats its elements, those of its storage."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())
