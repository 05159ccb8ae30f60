"""Run a function on ranks of either kind. It chooses the backend and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.ranks.cluster import Cluster
from labkit.ranks.comm import Comm
from labkit.ranks.simulated import simulate
from labkit.ranks.traffic import Traffic

BACKENDS = ("simulated", "gloo", "nccl")
TIMEOUT_S = 60.0


def run_ranks(
    fn: Callable[[Comm], Any], world_size: int, backend: str = "simulated", timeout_s: float = TIMEOUT_S
) -> list[Any]:
    """Call `fn(comm)` once for each of `world_size` ranks and return their results in order.

    Every rank starts with gradients on, and with the same random numbers as every other.

    backend: "simulated", in this process; "gloo", one process a rank; "nccl", one process and GPU a rank. In a process
    `torch.distributed` itself works too. timeout_s: real ranks that take longer are ended, and the error says what
    each waited for. Raises CommError where the ranks do not fit together or hang, RankFailed where one raises.
    """
    return measure_ranks(fn, world_size, backend, timeout_s)[0]


def measure_ranks(
    fn: Callable[[Comm], Any],
    world_size: int,
    backend: str = "simulated",
    timeout_s: float = TIMEOUT_S,
    cluster: Cluster | None = None,
) -> tuple[list[Any], Traffic]:
    """As `run_ranks`, and what the ranks sent one another, counted alike for all backends.

    cluster: the machine whose clock the traffic is timed by, and whose nodes it may cross; one node without it.
    """
    if not callable(fn):
        raise TypeError(f"run_ranks calls a function with the communicator of each rank, and {fn!r} is no function")
    if not hasattr(world_size, "__index__"):
        raise TypeError(f"world_size is {world_size!r}: it must be a whole number")
    if backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}: it must be one of {', '.join(BACKENDS)}")
    if backend == "simulated":
        return simulate(fn, world_size, cluster)
    from labkit.ranks.real import run_real

    return run_real(fn, world_size, backend, timeout_s, cluster)
