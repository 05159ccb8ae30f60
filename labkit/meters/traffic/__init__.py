"""Traffic: bytes that Triton kernels and PyTorch operations move to and from device memory, counted on a CPU."""

from labkit.meters.traffic.budget import measure_traffic
from labkit.meters.traffic.eager import Operation
from labkit.meters.traffic.profile import ArgumentTraffic, Launch, OutOfBounds, Race, TrafficProfile
from labkit.meters.traffic.track import track_traffic

__all__ = [
    "ArgumentTraffic",
    "Launch",
    "Operation",
    "OutOfBounds",
    "Race",
    "TrafficProfile",
    "measure_traffic",
    "track_traffic",
]
