"""What `torch.cuda` tells of memory, by the same names, for a simulated device.

The figures are kept by the timeline; nothing is counted here.
"""

from __future__ import annotations

from labkit.simdevice.allocator import CachingAllocator, Figures
from labkit.simdevice.state import DeviceState


class MemoryCounters:
    """The part of a simulated device that answers for its memory. All in bytes; `device` is there to be ignored."""

    _state: DeviceState

    @property
    def allocator(self) -> CachingAllocator | None:
        """The allocator, where the machine has one."""
        return self._state.timeline.ledger.allocator

    def memory_allocated(self, device: object = None) -> int:
        """Bytes of device memory in use: in blocks of the allocator where the machine has one, else by the byte."""
        return self._state.timeline.ledger.in_use_bytes()

    def max_memory_allocated(self, device: object = None) -> int:
        """The most bytes of device memory that were in use at once, since the last `reset_peak_memory_stats`."""
        return self._state.timeline.ledger.peak_bytes["device"]

    def memory_reserved(self, device: object = None) -> int:
        """Bytes of device memory that the allocator has from the driver; what is in use where there is no allocator."""
        return self._state.timeline.ledger.live_bytes[self._held_in]

    def max_memory_reserved(self, device: object = None) -> int:
        """The most bytes that were reserved at once, since the last `reset_peak_memory_stats`."""
        return self._state.timeline.ledger.peak_bytes[self._held_in]

    def mem_get_info(self, device: object = None) -> tuple[int, int]:
        """Bytes that the driver could still give, and all that the device has."""
        self._state.timeline.ledger.settle()
        return self._state.machine.memory_bytes - self.memory_reserved(), self._state.machine.memory_bytes

    def memory_stats(self, device: object = None) -> dict[str, int]:
        """The allocator's figures, by a few of PyTorch's names. Without an allocator, nothing was asked of a driver."""
        figures = self.allocator.figures if self.allocator else Figures()
        return {
            "allocated_bytes.all.current": self.memory_allocated(),
            "allocated_bytes.all.peak": self.max_memory_allocated(),
            "reserved_bytes.all.current": self.memory_reserved(),
            "reserved_bytes.all.peak": self.max_memory_reserved(),
            "requested_bytes.all.current": figures.requested_bytes if self.allocator else self.memory_allocated(),
            "num_device_alloc": figures.n_mallocs,
            "num_device_free": figures.n_frees,
        }

    def reset_peak_memory_stats(self, device: object = None) -> None:
        """Forget the peaks so far."""
        self._state.timeline.ledger.reset_peak()

    @property
    def host_bytes(self) -> int:
        """Bytes of host memory in use, pinned or not, that were made for or by copies."""
        return sum(self._state.timeline.ledger.live_bytes[place] for place in ("pinned", "pageable"))

    @property
    def max_host_bytes(self) -> int:
        """The most pinned and the most pageable bytes of the host that were in use at once, added."""
        return sum(self._state.timeline.ledger.peak_bytes[place] for place in ("pinned", "pageable"))

    @property
    def _held_in(self) -> str:
        return "reserved" if self.allocator else "device"
