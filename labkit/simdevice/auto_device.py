"""The machine's GPU where there is one, else a simulated device, for code that runs on both."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from labkit.devices import has_gpu
from labkit.simdevice.device import SimDevice
from labkit.simdevice.machine import Machine


@contextlib.contextmanager
def auto_device(machine: Machine) -> Iterator[tuple[Any, torch.device, Callable[[], float]]]:
    """(what has the names of torch.cuda, the device, the host's clock in seconds) for the length of a block.

    machine: what to simulate where there is no GPU.
    """
    if has_gpu():
        yield torch.cuda, torch.device("cuda"), time.perf_counter
        return
    with SimDevice(machine) as sim:
        yield sim, sim.device, lambda: sim.now_s
