"""The machine that a simulated device imitates: its rates and latencies. Numbers only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A host and one device with a link between them.

    A kernel takes kernel_s + max(FLOPs / flops_per_s, bytes / memory_bytes_per_s), a copy over the link copy_s +
    bytes / rate. The host spends launch_s to hand over any of them.
    """

    name: str = "a small device"
    flops_per_s: float = 10e12
    memory_bytes_per_s: float = 500e9
    to_device_bytes_per_s: float = 12e9
    to_host_bytes_per_s: float = 12e9
    launch_s: float = 5e-6
    kernel_s: float = 2e-6
    copy_s: float = 5e-6
    memory_bytes: int = 8 * 10**9

    def __post_init__(self) -> None:
        rates = (self.flops_per_s, self.memory_bytes_per_s, self.to_device_bytes_per_s, self.to_host_bytes_per_s)
        if not all(rate > 0 for rate in rates):
            raise ValueError(f"every rate of a machine must be positive, but they are {rates}")
        if min(self.launch_s, self.kernel_s, self.copy_s, self.memory_bytes) < 0:
            raise ValueError("no latency and no amount of memory of a machine may be negative")

    def kernel_time_s(self, flops: float, nbytes: int) -> float:
        """How long a kernel runs that does `flops` operations and moves `nbytes` of device memory."""
        return self.kernel_s + max(flops / self.flops_per_s, nbytes / self.memory_bytes_per_s)

    def copy_time_s(self, nbytes: int, to_device: bool) -> float:
        """How long a copy over the link takes."""
        return self.copy_s + nbytes / (self.to_device_bytes_per_s if to_device else self.to_host_bytes_per_s)
