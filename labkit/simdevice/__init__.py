"""An asynchronous device on the CPU: launches return at once, work runs in stream order on a virtual clock.

It has the names of `torch.cuda`, so a function that takes `cuda` runs on either. Values are real: every operation is
computed at once by the CPU, and only *when* it would have run is simulated.
"""

from labkit.simdevice.commands import Command, as_plain, from_plain
from labkit.simdevice.device import SimDevice
from labkit.simdevice.event import Event
from labkit.simdevice.machine import Machine
from labkit.simdevice.races import Race
from labkit.simdevice.replay import Replay, replay
from labkit.simdevice.stream import Stream
from labkit.simdevice.trace import Span, busy_s, save_trace
from labkit.simdevice.traced import Traced, traced

__all__ = [
    "Command",
    "Event",
    "Machine",
    "Race",
    "Replay",
    "SimDevice",
    "Span",
    "Stream",
    "Traced",
    "as_plain",
    "busy_s",
    "from_plain",
    "replay",
    "save_trace",
    "traced",
]
