"""Write a launch log: every launch of the metered blocks, and what PyTorch wrote between them, as plain data.

It is a claim like any other measure beside a student's code: what it is worth shows when it is repeated.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import torch
from torch.utils._python_dispatch import _disable_current_modes

from labkit.meters.dispatch import Meter
from labkit.meters.launch_log.moves import entries_of
from labkit.meters.launch_log.names import LoggedStorages, encoded
from labkit.meters.launch_log.source import digest_of_function
from labkit.meters.launches import KernelLaunch, listening
from labkit.meters.memory.storages import strided_in, tensors_in
from labkit.meters.traffic.eager import ALLOCATES, written_by
from labkit.spec import Tree

MAX_ENTRIES = 4096
"""Launches and operations that one log may hold; more are counted and not written down."""


class LaunchLog:
    """What happens in the `recording()` blocks of one run. inputs: the tensors that the run is fed, by path."""

    def __init__(self, inputs: Mapping[str, torch.Tensor]) -> None:
        self._storages = LoggedStorages(inputs)
        self._entries: list[dict[str, Tree]] = []
        self._n_left_out = 0
        self._is_open = False

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Write down what the block launches and writes. A block inside another adds nothing."""
        if self._is_open:
            yield
            return
        self._is_open = True
        try:
            with ExitStack() as stack:
                if importlib.util.find_spec("triton") is not None:
                    stack.enter_context(listening(self.write_launch))
                stack.enter_context(_Writes(self))
                yield
        finally:
            self._is_open = False

    def write_launch(self, launched: KernelLaunch) -> None:
        """Write down one launch; also one that was not run, whose tensors are Pointers."""
        self._add(
            {
                "do": "launch",
                "kernel": [launched.function.__name__, digest_of_function(launched.function)],
                "grid": list(launched.grid),
                "arguments": {name: encoded(value, self._storages) for name, value in launched.arguments.items()},
                "options": {name: value for name, value in launched.options.items() if type(value) in (int, bool)},
            }
        )

    def as_tree(self, outputs: Mapping[str, torch.Tensor]) -> Tree:
        """The log as plain data. outputs: the tensors that the run returned, by path."""
        return {
            "outputs": {path: self._storages.ref(tensor) for path, tensor in outputs.items()},
            "entries": self._entries,
            "left_out": self._n_left_out,
            "storages": self._storages.described,
        }

    def write(self, name: str, func, args: tuple, kwargs: dict, result: object) -> None:
        """Write down what one operation of PyTorch's wrote, if it wrote anything."""
        given, outputs = strided_in([args, kwargs]), strided_in(result)
        written = strided_in(written_by(func, args, kwargs))
        if not written:
            inputs = set(map(_storage, given))
            is_constant = name == "lift_fresh" and not all(map(self._storages.knows, outputs))
            written = [one for one in outputs if is_constant or _storage(one) not in inputs]
        written = [one for one in written if one.numel()]
        if not written or name in ALLOCATES:
            return
        ref = self._storages.ref
        # The vocabulary is of strided tensors.
        is_strided = len(written) == 1 and list(map(id, given)) == list(map(id, tensors_in([args, kwargs], [])))
        known = entries_of(name, args, kwargs, written[0], ref) if is_strided else None
        lost = {"do": "lost", "name": name, "to": [ref(one) for one in written]}
        self._add(*([lost] if known is None else known))

    def _add(self, *entries: dict[str, Tree]) -> None:
        room = max(MAX_ENTRIES - len(self._entries), 0)
        self._entries += entries[:room]
        self._n_left_out += max(len(entries) - room, 0)


class _Writes(Meter):
    def __init__(self, log: LaunchLog) -> None:
        super().__init__()
        self._log = log

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = self.decomposed(func, args, kwargs)
        if result is not NotImplemented:
            return result
        result = func(*args, **kwargs)
        # What the log itself looks at is nothing that another meter shall see.
        with _disable_current_modes():
            self._log.write(func._overloadpacket.__name__, func, args, kwargs, result)
        return result


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
