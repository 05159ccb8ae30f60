"""An asynchronous device on the CPU: launches return at once, work runs in stream order on a virtual clock.

It has the names of `torch.cuda`, so a function that takes `cuda` runs on either. Values are real: every operation is
computed at once by the CPU, and only *when* it would have run is simulated.
"""

from labkit.simdevice.alloc_events import alloc_events_of_commands, alloc_events_of_profile
from labkit.simdevice.allocator import CachingAllocator, Figures, NoRoom, rounded, segment_size
from labkit.simdevice.auto_device import auto_device
from labkit.simdevice.capture import CaptureError
from labkit.simdevice.commands import Command, as_plain, from_plain
from labkit.simdevice.device import SimDevice
from labkit.simdevice.graphs import CUDAGraph
from labkit.simdevice.machine import Machine
from labkit.simdevice.races import Race
from labkit.simdevice.run_traced import TracedRun, run_traced
from labkit.simdevice.stale import StaleInput
from labkit.simdevice.streams import Event, NotReady, Stream
from labkit.simdevice.syncs import implicit_syncs
from labkit.simdevice.timeline import DeviceTimeline, timeline_of
from labkit.simdevice.timing_probe import TimingProbe, probe_timing
from labkit.simdevice.trace import Span, busy_s, save_trace

__all__ = [
    "CUDAGraph",
    "CachingAllocator",
    "CaptureError",
    "Command",
    "DeviceTimeline",
    "Event",
    "Figures",
    "Machine",
    "NoRoom",
    "NotReady",
    "Race",
    "SimDevice",
    "Span",
    "StaleInput",
    "Stream",
    "TimingProbe",
    "TracedRun",
    "alloc_events_of_commands",
    "alloc_events_of_profile",
    "as_plain",
    "auto_device",
    "busy_s",
    "from_plain",
    "implicit_syncs",
    "probe_timing",
    "rounded",
    "run_traced",
    "save_trace",
    "segment_size",
    "timeline_of",
]
