"""Traffic: bytes that Triton kernels and PyTorch operations move to and from device memory, counted on a CPU."""

from labkit.meters.traffic.budget import figures_of, measure_traffic
from labkit.meters.traffic.eager import Operation
from labkit.meters.traffic.guard import LaunchOutOfBounds, guard_launches
from labkit.meters.traffic.profile import ArgumentTraffic, Launch, LaunchRace, OutOfBounds, TrafficProfile
from labkit.meters.traffic.track import track_traffic

__all__ = [
    "ArgumentTraffic",
    "Launch",
    "LaunchOutOfBounds",
    "LaunchRace",
    "Operation",
    "OutOfBounds",
    "TrafficProfile",
    "figures_of",
    "guard_launches",
    "measure_traffic",
    "track_traffic",
]
