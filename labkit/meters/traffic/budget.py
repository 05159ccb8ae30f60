"""The traffic meter as a driver opens it: figures by name into a dict, what they consist of into another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from labkit.measures import add_to
from labkit.meters.dispatch import Meter
from labkit.meters.traffic.eager import MAKE_NEW
from labkit.meters.traffic.profile import TrafficProfile
from labkit.meters.traffic.track import track_traffic
from labkit.unwritten import UNWRITTEN_BYTE


def figures_of(traffic: TrafficProfile) -> dict[str, float]:
    """What a budget can bound, by name; races counts elements, and out_of_bounds lanes that were masked off.

    Lanes between the elements of a view are not bounded here: what they read by mistake shows in the values.
    """
    return {
        "load_bytes": traffic.load_bytes,
        "store_bytes": traffic.store_bytes,
        "atomic_bytes": traffic.atomic_bytes,
        "launches": len(traffic.launches),
        "out_of_bounds": sum(one.lanes for one in traffic.out_of_bounds if not one.strides),
        "races": sum(one.elements for one in traffic.races),
        "undefined": sum(launch.n_undefined for launch in traffic.launches),
        "sector_efficiency": min((launch.sector_efficiency for launch in traffic.launches), default=1.0),
    }


@contextmanager
def measure_traffic(
    measured: dict[str, float], held: dict[str, Sequence[str]] | None = None
) -> Iterator[TrafficProfile]:
    """Add what the block moved to `measured`, by the names of `figures_of`.

    The figures of several blocks add up; of sector_efficiency the least of any launch counts. `held` receives one line
    for each kind of fault, and one for each launch and operation under load_bytes and store_bytes.

    What the block makes with torch.empty is `labkit.unwritten`, so that a value that no kernel stores shows at every
    run.
    """
    with _nothing_is_left_over(), track_traffic() as traffic:
        yield traffic
    _add_figures(traffic, measured, held)


class _FillsNewMemory(Meter):
    """Fills the floating-point tensors that the block allocates, behind the back of the meters inside of it."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func._overloadpacket.__name__ in MAKE_NEW and result.is_floating_point() and result.device.type == "cpu":
            result.untyped_storage().fill_(UNWRITTEN_BYTE)
        return result


@contextmanager
def _nothing_is_left_over() -> Iterator[None]:
    """New memory holds no number, not what was there before, such as a result of the last run.

    Floating point is filled with UNWRITTEN_BYTE, integers by PyTorch with the largest.
    """
    before = torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory
    torch.set_deterministic_debug_mode("warn")
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        with _FillsNewMemory():
            yield
    finally:
        torch.set_deterministic_debug_mode(before[0])
        torch.utils.deterministic.fill_uninitialized_memory = before[1]


def _add_figures(
    traffic: TrafficProfile, measured: dict[str, float], held: dict[str, Sequence[str]] | None = None
) -> None:
    """Add a profile's figures to `measured`, and what they consist of to `held`; see `measure_traffic`."""
    for name, value in figures_of(traffic).items():
        add_to(measured, name, value)
    if held is None:
        return
    arguments = [(f"{launch.kernel} {a.name}", a) for launch in traffic.launches for a in launch.arguments.values()]
    movers = [*arguments, *((f"torch.{one.name}", one) for one in traffic.operations)]
    for name in ("load_bytes", "store_bytes"):
        lines = [f"{label}: {getattr(one, name):,} bytes" for label, one in movers if getattr(one, name)]
        held[name] = [*held.get(name, ()), *lines]
    held["out_of_bounds"] = [*held.get("out_of_bounds", ()), *map(str, traffic.out_of_bounds)]
    held["races"] = [*held.get("races", ()), *map(str, traffic.races)]
    undefined = [launch.undefined for launch in traffic.launches if launch.undefined]
    held["undefined"] = [*held.get("undefined", ()), *undefined]
