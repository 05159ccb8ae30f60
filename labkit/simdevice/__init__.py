"""An asynchronous device on the CPU: launches return at once, work runs in stream order on a virtual clock.

It has the names of `torch.cuda`, so a function that takes `cuda` runs on either. Values are real: every operation is
computed at once by the CPU, and only *when* it would have run is simulated.
"""

from labkit.simdevice.allocator import CachingAllocator, Figures, NoRoom, rounded, segment_size
from labkit.simdevice.commands import Command, as_plain, from_plain
from labkit.simdevice.device import SimDevice
from labkit.simdevice.either import either_device
from labkit.simdevice.machine import Machine
from labkit.simdevice.races import Race
from labkit.simdevice.replay import Replay, replay
from labkit.simdevice.requests import requests_of_commands, requests_of_profile
from labkit.simdevice.streams import Event, NotReady, Stream
from labkit.simdevice.syncs import implicit_syncs
from labkit.simdevice.trace import Span, busy_s, save_trace
from labkit.simdevice.traced import Traced, traced
from labkit.simdevice.watched import WatchedTiming, watch_timing

__all__ = [
    "CachingAllocator",
    "Command",
    "Event",
    "Figures",
    "Machine",
    "NoRoom",
    "NotReady",
    "Race",
    "Replay",
    "SimDevice",
    "Span",
    "Stream",
    "Traced",
    "WatchedTiming",
    "as_plain",
    "busy_s",
    "either_device",
    "from_plain",
    "implicit_syncs",
    "replay",
    "requests_of_commands",
    "requests_of_profile",
    "rounded",
    "save_trace",
    "segment_size",
    "traced",
    "watch_timing",
]
