"""Live storages with their history: a record of each, and the live bytes after every operation."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import torch

from labkit.meters.memory.live import LiveStorage, LiveStorages
from labkit.meters.memory.record import Phase, Record
from labkit.meters.memory.sites import calling_site

START = "start"
"""The name of the first point of every timeline: what there was before."""

_backward_task = torch._C._current_graph_task_id


class Tracker(LiveStorages):
    """Records of all storages. sites: find out on which line each was made; it costs more than all the rest."""

    def __init__(self, device_type: str | None = None, sites: bool = False) -> None:
        super().__init__(device_type)
        self.records: list[Record] = []
        self.ops: list[str] = [START]
        self.in_step = False
        self._phase, self._phase_number = Phase.FORWARD, 0
        self._sites = sites
        # Of the given storages, those found late were there from the start: their bytes are added to all points.
        self._made_curve: list[int] = [0]
        self._freed_curve: list[int] = [0]
        self._names: dict[object, str] = {}

    @property
    def curve(self) -> list[int]:
        """Live bytes at each point."""
        return [
            made + self.given_bytes - freed for made, freed in zip(self._made_curve, self._freed_curve, strict=True)
        ]

    def live_records(self) -> list[Record]:
        return [entry.about for entry in self._live.values()]

    def used_parameters(self) -> list[torch.nn.Parameter]:
        """The parameters that operations were seen to use."""
        if not self._live:
            return []
        # Looked for rather than kept: a reference of ours would keep the tensor alive, or its like in swap_tensors.
        found = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Parameter)]
        return [one for one in found if self.storages_of(one)]

    def label(self, tensors: Iterable[torch.Tensor], label: str, over: tuple[str | None, ...] | None = None) -> None:
        """Put the storages of these tensors into a category; `over`: only those whose label is one of these."""
        for tensor in tensors:
            for entry in self.storages_of(tensor):
                if over is None or entry.about.label in over:
                    entry.about.label = label

    def before(self, func: object) -> None:
        recorded = torch.is_grad_enabled()
        backward = not recorded and _backward_task() != -1
        # A closure's passes run inside of step(), the first of them with gradients recorded.
        stepping = self.in_step and not recorded
        phase = Phase.BACKWARD if backward else Phase.STEP if stepping else Phase.FORWARD
        if phase is not self._phase:
            self._phase = phase
            self._phase_number += 1

    def after(self, func: object) -> None:
        self.ops.append(self._name_of(func))
        self._made_curve.append(self.made_bytes)
        self._freed_curve.append(self.freed_given_bytes)

    def about(self, tensor: torch.Tensor, func: object | None) -> Record:
        made = func is not None
        record = Record(
            tensor.untyped_storage().nbytes(),
            tuple(tensor.shape),
            tensor.dtype,
            len(self.ops) if made else 0,
            self._name_of(func) if made else START,
            made,
            self._phase_number,
            self._phase is Phase.FORWARD,
            calling_site(self.thread) if made and self._sites else None,
        )
        if not made and isinstance(tensor, torch.nn.Parameter):
            record.label = "parameters"
        self.records.append(record)
        return record

    def changed(self, entry: LiveStorage, more: int) -> None:
        entry.about.n_bytes += more
        entry.about.changes.append((len(self.ops), more))

    def ends(self, entry: LiveStorage) -> None:
        record = entry.about
        record.freed = len(self.ops)
        record.kept = record.recorded and self._phase_number != record.phase_number

    def __exit__(self, *error: object) -> None:
        for record in self.live_records():
            record.kept = record.recorded
        super().__exit__(*error)

    def _name_of(self, func: object) -> str:
        name = self._names.get(func)
        if name is None:
            name = self._names[func] = str(func).removesuffix(".default").removeprefix("aten.")
        return name
