"""The meter of kernels as a driver opens it: their traffic, and whether PyTorch computes what they should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from labkit.measures import add_to
from labkit.meters.launch_log.origin import Origin
from labkit.meters.launch_log.record import LaunchLog
from labkit.meters.traffic.budget import measure_traffic
from labkit.meters.traffic.profile import TrafficProfile

BY_TORCH = "computed_by_torch"


@contextmanager
def measure_kernels(measured: dict[str, float], held: dict[str, Sequence[str]] | None = None) -> Iterator[None]:
    """As `measure_traffic`, and `computed_by_torch`: operations that compute what is not made of kernels' results.

    Such an operation is of no use in a graded answer: only kernels, and moves between them, are run again there.
    """
    log = LaunchLog({})
    with measure_traffic(measured, held) as traffic, log.recording():
        yield
    foreign = _foreign(log, traffic)
    add_to(measured, BY_TORCH, len(foreign))
    if held is not None:
        held[BY_TORCH] = [*held.get(BY_TORCH, ()), *(f"torch.{name}" for name in dict.fromkeys(foreign))]


def _foreign(log: LaunchLog, traffic: TrafficProfile) -> list[str]:
    plain = log.as_tree({})
    origin, launches, found = Origin([one["bytes"] for one in plain["storages"]]), iter(traffic.launches), []
    for entry in plain["entries"]:
        if entry["do"] == "launch":
            origin.add_launch(entry, next(launches))
        elif not origin.allows(entry):
            found.append(entry["name"])
    return found
