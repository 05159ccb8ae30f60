"""A log of kernel launches: what was launched on what, and what PyTorch moved in between, without any of the data.

It is recorded where an answer runs. Elsewhere its launches are repeated, on other inputs, from the kernels' source.
"""

from labkit.meters.launch_log.meter import measure_kernels
from labkit.meters.launch_log.record import MAX_ENTRIES, LaunchLog
from labkit.meters.launch_log.rerun import Rerunner, RerunResult, UnusableLog
from labkit.meters.launch_log.source import digest_of_function, digest_of_node

__all__ = [
    "MAX_ENTRIES",
    "LaunchLog",
    "RerunResult",
    "Rerunner",
    "UnusableLog",
    "digest_of_function",
    "digest_of_node",
    "measure_kernels",
]
