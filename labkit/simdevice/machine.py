"""The machine that a simulated device imitates: its rates and latencies. Numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass

GOLDEN_RATIO = (1 + math.sqrt(5)) / 2


@dataclass(frozen=True)
class Machine:
    """A host and one device with a link between them.

        Machine("a slow link", to_device_bytes_per_s=1e9, to_host_bytes_per_s=1e9)

    A kernel takes kernel_s + max(FLOPs / flops_per_s, bytes / memory_bytes_per_s), a copy over the link copy_s +
    bytes / rate. The host spends launch_s to hand over any of them.

    What a plain machine leaves out:
    first_call_s: what the host spends more on the first launch of each kernel, for loading its code.
    jitter: the part by which a kernel may take longer, most by far less, as on a machine that others use, too.
    cache_bytes: what the device's last-level cache holds; bytes found there move at cache_bytes_per_s.
    caching_allocator: whether device memory is handed out in PyTorch's blocks and segments, not by the byte. Then
    malloc_s and free_s are what the driver takes for a segment, and before it takes one back the device is waited for.
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
    first_call_s: float = 0.0
    jitter: float = 0.0
    cache_bytes: int = 0
    cache_bytes_per_s: float = 5e12
    caching_allocator: bool = False
    malloc_s: float = 0.0
    free_s: float = 0.0

    def __post_init__(self) -> None:
        rates = (
            self.flops_per_s,
            self.memory_bytes_per_s,
            self.to_device_bytes_per_s,
            self.to_host_bytes_per_s,
            self.cache_bytes_per_s,
        )
        if not all(rate > 0 for rate in rates):
            raise ValueError(f"every rate of a machine must be positive, but they are {rates}")
        latencies = (self.launch_s, self.kernel_s, self.copy_s, self.first_call_s, self.malloc_s, self.free_s)
        if min(*latencies, self.memory_bytes, self.cache_bytes, self.jitter) < 0:
            raise ValueError("no latency, no jitter and no amount of memory of a machine may be negative")

    def kernel_time_s(self, flops: float, nbytes: int, cached_bytes: int = 0, number: int = 0) -> float:
        """How long a kernel runs that does `flops` operations and moves `nbytes`, so many of them from the cache.

        number: how many kernels ran before, which decides about the jitter.
        """
        moving_s = (nbytes - cached_bytes) / self.memory_bytes_per_s + cached_bytes / self.cache_bytes_per_s
        return (self.kernel_s + max(flops / self.flops_per_s, moving_s)) * self.slow_down(number)

    def slow_down(self, number: int) -> float:
        """By what factor the jitter lengthens a kernel: 1 to 1 + jitter, the same on every run.

        Multiples of the golden ratio, modulo 1, spread evenly whatever regular choice of the kernels is looked at
        (H. Weyl, 1916); the third power makes small delays common and large ones rare.
        """
        return 1 + self.jitter * (number * GOLDEN_RATIO % 1.0) ** 3

    def copy_time_s(self, nbytes: int, to_device: bool) -> float:
        """How long a copy over the link takes."""
        return self.copy_s + nbytes / (self.to_device_bytes_per_s if to_device else self.to_host_bytes_per_s)
