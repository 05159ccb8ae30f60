"""Follow one launch access by access: count, mask off what is out of bounds, look for races, give the real addresses.

It knows arrays of addresses and masks, and nothing of Triton.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.meters.traffic.addresses import AddressBook, Argument, offsets_in, shift_to_real
from labkit.meters.traffic.profile import (
    SECTOR_BYTES,
    ArgumentTraffic,
    Launch,
    LaunchRace,
    OutOfBounds,
    Program,
    Stored,
)
from labkit.meters.traffic.races import Order, Touched

NOWHERE = "(no argument)"


@dataclass
class Storage:
    """The memory behind one or several arguments, in units of the smallest element type among them."""

    unit_bytes: int
    n_units: int
    touched: Touched


class TrafficRecorder:
    """Everything about one launch, written into a Launch while its programs run."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.book = AddressBook()
        self.order = Order()
        self.programs: list[Program] = [(0, 0, 0)]
        self._storages: dict[int, Storage] = {}
        self._touched: dict[tuple[int, str], np.ndarray] = {}
        self._problems: dict[tuple[str, str, str], OutOfBounds | LaunchRace] = {}

    def add(self, name: str, tensor) -> None:
        """Register a tensor argument, before the first program."""
        argument = self.book.add(name, tensor)
        self.launch.arguments[name] = ArgumentTraffic(name)
        known = self._storages.get(argument.storage)
        unit = min(argument.item_bytes, known.unit_bytes) if known else argument.item_bytes
        n_units = -(-tensor.untyped_storage().nbytes() // unit)
        self._storages[argument.storage] = Storage(unit, n_units, Touched(n_units))

    def start_program(self, program: Program) -> None:
        self.programs.append(program)
        self.order.start(len(self.programs) - 1)

    def finish(self) -> None:
        """After the last program."""
        for argument in self.book.arguments:
            units = self._touched.get((argument.number, "store"))
            if units is not None:
                self.launch.stored[argument.name] = Stored.of(units, self._storages[argument.storage].unit_bytes)

    def access(
        self, kind: str, addresses: np.ndarray, mask: np.ndarray, item_bytes: int, values: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Count a block's access; the real addresses, and the mask without lanes that are out of bounds.

        kind: load, store or atomic. addresses: uint64. mask: bool, broadcastable to them. item_bytes: of the pointer's
        element type. values: what a store writes, to tell harmless doubles from harmful ones.
        """
        if mask.shape != addresses.shape:
            addresses, mask = np.broadcast_arrays(addresses, mask)
        full = bool(mask.all())
        active = addresses.reshape(-1) if full else addresses[mask]
        if not active.size:
            return addresses, mask
        first = int(active[0])
        argument = self.book.at(first)
        if argument is not None:
            offsets = offsets_in(argument, active)
            if int(offsets.min()) >= 0 and int(offsets.max()) + item_bytes <= argument.extent_bytes:
                self._look_for_strays(kind, argument, offsets)
                lanes = values if values is None or full else np.broadcast_to(values, mask.shape)[mask]
                self._count(kind, argument, offsets, item_bytes, lanes)
                return addresses + shift_to_real(argument, first), mask
        return self._mixed(kind, addresses, mask, item_bytes)

    def _mixed(
        self, kind: str, addresses: np.ndarray, mask: np.ndarray, item_bytes: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same for lanes of several arguments, or of none."""
        real, inside = addresses.copy(), np.zeros(addresses.shape, dtype=bool)
        waiting = mask.copy()
        while waiting.any():
            first = int(addresses[waiting][0])
            argument = self.book.at(first)
            same = waiting & (self.book.numbers(addresses) == self.book.numbers(np.array([first], np.uint64))[0])
            waiting &= ~same
            if argument is None:
                self._report(kind, NOWHERE, 0, int(same.sum()))
                continue
            offsets = offsets_in(argument, addresses[same])
            good = (offsets >= 0) & (offsets + item_bytes <= argument.extent_bytes)
            if not good.all():
                wrong = int(offsets[~good][0]) // argument.item_bytes
                self._report(kind, argument.name, wrong, int((~good).sum()), argument.n_elements)
            inside[same] = good
            real[same] += shift_to_real(argument, first)
            if good.any():
                self._look_for_strays(kind, argument, offsets[good])
                self._count(kind, argument, offsets[good], item_bytes, None)
        return real, inside

    def use_undefined(self, operation: str) -> None:
        """Lanes that a mask left out, without `other=`, take part in a reduction or a product."""
        self.launch.n_undefined += 1
        if not self.launch.undefined:
            where = f"kernel {self.launch.kernel}, program {self.programs[-1]}"
            self.launch.undefined = f"{where}: {operation} takes masked lanes that were loaded without other="

    def _look_for_strays(self, kind: str, argument: Argument, offsets: np.ndarray) -> None:
        """Lanes between the elements of a view do no harm to the process, and are not masked off."""
        if argument.held is None:
            return
        strays = ~argument.held[offsets // argument.item_bytes]
        if strays.any():
            index = int(offsets[strays][0]) // argument.item_bytes
            self._report(kind, argument.name, index, int(strays.sum()), strides=argument.strides)

    def _report(
        self, kind: str, argument: str, index: int, lanes: int, n_elements: int = 0, strides: tuple[int, ...] = ()
    ) -> None:
        what = "between" if strides else "out"
        known = self._problems.get((what, kind, argument))
        if known is not None:
            known.lanes += lanes
            return
        program = self.programs[-1]
        problem = OutOfBounds(self.launch.kernel, kind, argument, index, n_elements, program, lanes, strides)
        self._problems[what, kind, argument] = problem
        self.launch.out_of_bounds.append(problem)

    def _count(
        self, kind: str, argument: Argument, offsets: np.ndarray, item_bytes: int, values: np.ndarray | None
    ) -> None:
        traffic = self.launch.arguments[argument.name]
        n_bytes = offsets.size * item_bytes
        storage = self._storages[argument.storage]
        units, distinct = _units(offsets + argument.offset_bytes, item_bytes, storage.unit_bytes)
        doubled = distinct.size < units.size
        distinct_bytes = distinct.size * min(storage.unit_bytes, item_bytes)
        traffic.useful_bytes += distinct_bytes
        traffic.sectors += _sectors(distinct, storage.unit_bytes)
        at = _as_slice(distinct)
        if kind == "load":
            traffic.load_bytes += n_bytes
            traffic.unique_load_bytes += self._new(argument, "load", at, storage) * storage.unit_bytes
        else:
            if kind == "store":
                traffic.store_bytes += n_bytes
            else:
                traffic.atomic_bytes += n_bytes
            traffic.unique_store_bytes += self._new(argument, "store", at, storage) * storage.unit_bytes
        if kind == "store" and doubled and values is not None:
            self._look_for_doubles(argument, storage, units, values)
        self._look_for_races(kind, argument, storage, at, distinct)

    def _new(self, argument: Argument, kind: str, at: slice | np.ndarray, storage: Storage) -> int:
        """How many of these units the argument had not been loaded from, or stored to, before."""
        touched = self._touched.get((argument.number, kind))
        if touched is None:
            touched = self._touched[argument.number, kind] = np.zeros(storage.n_units, dtype=bool)
        part = touched[at]
        fresh = part.size - int(np.count_nonzero(part))
        touched[at] = True
        return fresh

    def _look_for_races(
        self, kind: str, argument: Argument, storage: Storage, at: slice | np.ndarray, distinct: np.ndarray
    ) -> None:
        found = storage.touched.conflicts(kind, at, self.order)
        if found is not None:
            earlier, others, programs = found
            index = int(distinct[others][0]) * storage.unit_bytes - argument.offset_bytes
            # One of many readers cannot be named; the program before is as good an example as any.
            first = int(programs[others][0])
            first = self.programs[first] if first > 0 else self.programs[max(1, len(self.programs) - 2)]
            self._race(f"{kind} after {earlier}", argument, index // argument.item_bytes, first, int(others.sum()))
        storage.touched.touch(kind, at, self.order)

    def synchronize(self, addresses: np.ndarray, mask: np.ndarray, acquires: bool, releases: bool) -> None:
        """Order programs by an atomic, after `access` has counted it; addresses as the kernel gave them."""
        addresses, mask = np.broadcast_arrays(addresses, mask)
        active = addresses[mask]
        argument = self.book.at(int(active[0])) if active.size else None
        if argument is None:
            return
        storage = self._storages[argument.storage]
        units = (offsets_in(argument, active) + argument.offset_bytes) // storage.unit_bytes
        storage.touched.synchronize(units, self.order, acquires, releases)

    def _look_for_doubles(self, argument: Argument, storage: Storage, units: np.ndarray, values: np.ndarray) -> None:
        per_lane = units.size // max(1, np.size(values)) or 1
        lanes, stored = units[::per_lane], np.ravel(values)
        if lanes.size != stored.size:
            return
        order = np.argsort(lanes, kind="stable")
        lanes, stored = lanes[order], stored[order]
        clash = (lanes[1:] == lanes[:-1]) & (stored[1:] != stored[:-1])
        if clash.any():
            index = (int(lanes[1:][clash][0]) * storage.unit_bytes - argument.offset_bytes) // argument.item_bytes
            self._race("lanes", argument, index, self.programs[-1], int(np.unique(lanes[1:][clash]).size))

    def _race(self, kind: str, argument: Argument, index: int, first: Program, elements: int) -> None:
        known = self._problems.get(("race", kind, argument.name))
        if known is not None:
            known.elements += elements
            return
        race = LaunchRace(self.launch.kernel, kind, argument.name, index, first, self.programs[-1], elements)
        self._problems["race", kind, argument.name] = race
        self.launch.races.append(race)


def _units(offsets: np.ndarray, item_bytes: int, unit_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """The units that each lane covers, in the order of lanes, and the distinct ones among them, ascending."""
    units = offsets if unit_bytes == 1 else offsets // unit_bytes
    if item_bytes > unit_bytes:
        units = (units[:, None] + np.arange(item_bytes // unit_bytes)).reshape(-1)
    if units.size == 1 or (units[1:] > units[:-1]).all():
        return units, units
    return units, np.unique(units)


def _sectors(distinct: np.ndarray, unit_bytes: int) -> int:
    sectors = distinct // (SECTOR_BYTES // unit_bytes)
    return 1 + int(np.count_nonzero(sectors[1:] != sectors[:-1]))


def _as_slice(distinct: np.ndarray) -> slice | np.ndarray:
    """Neighbouring units as a slice, which numpy reads and writes many times faster."""
    first, last = int(distinct[0]), int(distinct[-1])
    return slice(first, last + 1) if last - first + 1 == distinct.size else distinct
