"""What a block costs on a machine: its operations in order, their FLOPs and bytes, and their time on the roofline.

An operation takes as long as the slower of two things: its products at the card's rate for their dtype, and the bytes
of the tensors that it reads and writes at the rate of the card's memory. Operations follow one another; nothing
overlaps. What is copied to the host or sent to other cards is added by whoever does it (`Costs.copied`, `Costs.sent`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from labkit.capstone.machine import Machine
from labkit.meters.dispatch import Meter
from labkit.meters.memory.storages import tensors_in
from labkit.meters.ops import flop_formula

_NO_BYTES = ("empty", "new_empty", "_local_scalar_dense", "detach", "lift_fresh")
_ONLY_WRITES = ("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "_foreach_zero_", "_foreach_copy_")
_PICKS = ("embedding", "gather", "index", "index_select", "nll_loss_forward")
"""Operations that read of their first tensor only what they pick from it."""
_BY_WEIGHTS = ("mm", "addmm", "addmm_")
"""Products of two matrices, as those of tokens and weights are; attention multiplies batches of them."""

Step = tuple[str, tuple[tuple[tuple[int, ...], str], ...]]
"""An operation as it is compared: its name, and shape and dtype of every tensor that goes in."""


class Costs(Meter):
    """Counts while it is entered. machine: without one, operations are listed and nothing is counted.

    seconds: on the machine. unsupported: dtypes of products that it cannot run. operations: in their order.
    matrix_flops: of products of two matrices. written: elements, by the storages that `watch` was told of.
    """

    def __init__(self, machine: Machine | None = None) -> None:
        super().__init__()
        self.machine = machine
        self.operations: list[Step] = []
        self.flops: Counter[str] = Counter()
        self.n_bytes = self.host_bytes = self.link_bytes = self.matrix_flops = 0
        self.written: dict[int, int] = {}
        self.seconds = 0.0
        self.unsupported: set[str] = set()
        self._paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What the engine itself does is no cost of the script's."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def watch(self, tensors: Iterable[Tensor]) -> None:
        """Count from now on how many elements are written into these."""
        self.written = {storage_of(one): 0 for one in tensors}

    def wrote(self, tensor: Tensor) -> None:
        """All of the tensor has been written."""
        if (storage := storage_of(tensor)) in self.written:
            self.written[storage] += tensor.numel()

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
        if self._paused or func is torch.ops.prim.device.default:
            return func(*args, **kwargs)
        name = func._overloadpacket.__name__
        used = tensors_in(kwargs, tensors_in(args, []))
        # Before the operation, which may give what it works on another shape.
        shapes = tuple((tuple(one.shape), str(one.dtype)) for one in used)
        result = func(*args, **kwargs)
        self.operations.append((name, shapes))
        if self.machine is not None:
            self._count(func, name, args, kwargs, used, result)
        return result

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
        for one in written:
            self.wrote(one)
        n_bytes = _moved_bytes(name, used, written, result)
        self.n_bytes += n_bytes
        self.seconds += max(seconds, n_bytes / self.machine.bytes_per_s)


def storage_of(tensor: Tensor) -> int:
    """What tells a tensor's memory from that of others while it lives."""
    return tensor.untyped_storage()._cdata


def _moved_bytes(name: str, used: list[Tensor], written: list[Tensor], result: object) -> int:
    """Bytes read and written; a view moves nothing."""
    if name.startswith(_NO_BYTES):
        return 0
    made = tensors_in(list(result) if isinstance(result, tuple) else [result], [])
    inputs = {storage_of(one) for one in used}
    new = [one for one in made if storage_of(one) not in inputs]
    if not new and not written:
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
