"""The dispatch mode that counts live storages, each from the operation that makes it until it is freed.

It sees what PyTorch dispatches: not the scratch memory inside an operator, and no allocator's rounding or caching.
Tensors are found wherever they hide, because a storage is followed by its own life and not by who holds it. No
history is kept, so that its own memory does not grow with the length of the block.

What other threads than autograd's make is not seen until the block's own uses it, and counts as given then. Where a
tensor is used more than once, autograd adds the gradients in place if nobody looks, and out of place under any dispatch
mode, this one too.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable

import torch
from torch._C._dynamo.eval_frame import set_eval_frame

from labkit.meters.dispatch import Meter
from labkit.meters.memory.storages import strided_parts, tensors_in

_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
LIFT_FRESH = torch.ops.aten.lift_fresh.default
_DEVICE_OF = torch.ops.prim.device.default
"""Looked up once: every operation that is metered is compared with these."""


class LiveStorage(weakref.ref):
    """A live storage: its key and bytes, and whether the block made it.

    grown: the bytes by which it was resized since it was first seen; about: a subclass's notes. They are set by whoever
    makes one: an `__init__` in Python would cost more than the rest of it.
    """

    __slots__ = ("about", "grown", "key", "made", "n_bytes")


class LiveStorages(Meter):
    """Bytes alive of what the block made and of what it was given, on `device_type` or on any (None).

    A given storage counts from the start, and is found at the latest when an operation first uses it. Tensors on the
    meta device take no memory: what they would take is told only where `device_type` is "meta".
    """

    def __init__(self, device_type: str | None = None) -> None:
        super().__init__()
        self.made_bytes = 0
        self.most_made_bytes = 0
        self.given_bytes = 0
        self.freed_given_bytes = 0
        self.thread = threading.get_ident()
        self._device_type = device_type
        self._live: dict[int, LiveStorage] = {}

    @property
    def live_bytes(self) -> int:
        return self.made_bytes + self.given_bytes - self.freed_given_bytes

    def give(self, tensors: Iterable[torch.Tensor]) -> None:
        """Say that these exist already."""
        for tensor in tensors:
            self._look(tensor, None)

    def storages_of(self, tensor: torch.Tensor) -> list[LiveStorage]:
        """The live storages of a tensor, as far as they are known."""
        found = (self._live.get(part.untyped_storage()._cdata) for part in strided_parts(tensor))
        return [entry for entry in found if entry is not None]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # In a compiled program that runs op by op, the compiler would go on to compile this meter.
        compiler = set_eval_frame(None)
        try:
            return self._dispatch(func, types, args, kwargs)
        finally:
            set_eval_frame(compiler)

    def _dispatch(self, func, types, args, kwargs):
        if func is _DEVICE_OF:
            # How fake tensors tell their device: no operation of the program.
            return func(*args)
        if types and any(hasattr(kind, "__tensor_flatten__") for kind in types):
            # A wrapper runs its own program on what it holds: that is what is followed.
            return NotImplemented
        kwargs = kwargs or {}
        result = self.decomposed(func, args, kwargs)
        if result is not NotImplemented:
            return result
        self.before(func)
        # torch.tensor(...) fills a tensor unseen and hands it to lift_fresh, which makes it known: it is not given.
        used = [] if func is LIFT_FRESH else tensors_in(args, [])
        if kwargs:
            tensors_in(kwargs, used)
        for tensor in used:
            self._look(tensor, None)
        result = func(*args, **kwargs)
        if type(result) in _PLAIN:
            self._look(result, func)
        else:
            for tensor in tensors_in(result, []):
                self._look(tensor, func)
        if self.made_bytes > self.most_made_bytes:
            self.most_made_bytes = self.made_bytes
        try:
            self.after(func)
        except BaseException:
            # The traceback keeps this frame, and with it what must not outlive the error.
            result = used = tensor = args = kwargs = None
            raise
        return result

    def before(self, func: object) -> None:
        """An operation is about to run."""

    def after(self, func: object) -> None:
        """An operation has run, and what it made has been counted."""

    def makes(self, func: object, tensor: torch.Tensor) -> bool:
        """Whether a storage seen for the first time as a result of `func` is the block's own."""
        return True

    def about(self, tensor: torch.Tensor, func: object | None) -> object:
        """What to note of a storage seen for the first time, made by `func` or given (None)."""

    def changed(self, entry: LiveStorage, more: int) -> None:
        """A storage was resized in place."""

    def ends(self, entry: LiveStorage) -> None:
        """A storage is about to leave the count."""

    def _look(self, tensor: torch.Tensor, func: object | None) -> None:
        # The usual tensor is told from the others here: this is where the meter spends its time.
        if type(tensor) in _PLAIN and tensor.layout is torch.strided and not tensor.is_nested:
            self._count(tensor, func)
        else:
            for part in strided_parts(tensor):
                self._count(part, func)

    def _count(self, part: torch.Tensor, func: object | None) -> None:
        storage = part.untyped_storage()
        key, n_bytes = storage._cdata, storage.nbytes()
        entry = self._live.get(key)
        if entry is None:
            if not self._is_counted(part.device.type):
                return
            maker = func if func is not None and self.makes(func, part) else None
            entry = LiveStorage(storage, self._forget)
            entry.key, entry.n_bytes, entry.grown, entry.made = key, n_bytes, 0, maker is not None
            entry.about = self.about(part, maker)
            # Not before it is complete: any of these lines may let the garbage collector free another storage.
            self._live[key] = entry
            if entry.made:
                self.made_bytes += n_bytes
            else:
                self.given_bytes += n_bytes
        elif n_bytes != entry.n_bytes:
            # What a given storage gained in the block is the block's.
            more, entry.n_bytes = n_bytes - entry.n_bytes, n_bytes
            entry.grown += more
            self.made_bytes += more
            self.changed(entry, more)

    def _is_counted(self, device_type: str) -> bool:
        return device_type != "meta" if self._device_type is None else device_type == self._device_type

    def _forget(self, entry: LiveStorage) -> None:
        if self._live.get(entry.key) is not entry:
            return
        del self._live[entry.key]
        self.ends(entry)
        if entry.made:
            self.made_bytes -= entry.n_bytes
        else:
            self.made_bytes -= entry.grown
            self.freed_given_bytes += entry.n_bytes - entry.grown

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        # Nothing is counted any more: what is freed from here on was alive at the end.
        self._live = {}
