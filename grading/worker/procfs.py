"""What a job's processes take together, asked of /proc by somebody who is not one of them.

A limit per process would not stop a job that makes many, so the memory of all is added up. What processes share counts
once, and shared memory counts whether or not it is in anybody's record at the moment. So do what was swapped out, page
tables, and what may wait in sockets, which the kernel keeps for a job though no process of it has them open any more.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LOOK_S = 0.05
"""How often the memory of a running job is looked at, if nothing speaks for later."""
_FILLED_BYTES_PER_S = 2 * 2**30
"""About the most that one processor can fill of new memory, most of which time goes into the kernel's empty pages."""
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
COUNTS_WAITING = os.path.exists("/proc/self/schedstat")
"""Whether this kernel was built to say how long a process waited for a processor."""
_MEMORY = ("RssAnon", "RssShmem", "VmSwap", "VmData", "VmStk", "VmSize", "VmPTE")
_SOCKET_TIMES = 1.5
"""The most that waits in a socket, in sizes of its buffer: the last piece may be half of it."""
PACKET_BYTES = 2**16
"""The most that the kernel keeps for a packet that arrived: as much may be in it, and one byte keeps half of that."""
_MOST_UNSENT_BYTES = 2**24
"""The most that is taken to wait in a TCP socket for being sent, on a machine tuned for more. One that waits for
nothing is counted like the others."""


@contextlib.contextmanager
def gone_is_fine() -> Iterator[None]:
    """For a block about a process that may end, with all that /proc has of it, at any moment."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        yield


def descendants(pid: int) -> list[int]:
    """The process ids of everything that `pid` and its children have started and that is still there."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        started = children(waiting.pop())
        found += started
        waiting += started
    return found


def children(pid: int) -> list[int]:
    """The process ids of what `pid` itself has started and has not collected yet, the oldest first."""
    found: list[int] = []
    # A process may end, with or without its threads, while we look.
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


@dataclass(frozen=True)
class Memory:
    """Figures of one process, in bytes; all 0 when it is gone.

    resident: its own and shared memory that is no file's, also what is swapped out. data: private writable addresses.
    stack: those that grow downwards. addresses: all of them. tables: the kernel's, of which page is where.
    """

    resident_bytes: int = 0
    data_bytes: int = 0
    stack_bytes: int = 0
    addresses_bytes: int = 0
    tables_bytes: int = 0


def memory_of(pid: int) -> Memory:
    """Read from /proc/PID/status."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in _MEMORY:
                found[name] = int(rest.split()[0]) * 1024
    resident_bytes = sum(found.get(name, 0) for name in ("RssAnon", "RssShmem", "VmSwap"))
    return Memory(resident_bytes, *(found.get(name, 0) for name in ("VmData", "VmStk", "VmSize", "VmPTE")))


def sockets_bytes(pid: int) -> int:
    """The most that the sockets of this process's network can hold, whoever has them open, if anybody has.

    Of the internet's, what has ever been sent bounds what waits to be received: each packet counts as the largest.
    """
    with contextlib.suppress(OSError):
        waiting_bytes = 0
        for protocol, n_sockets in _sockets(pid).items():
            waiting_bytes += int(n_sockets * _SOCKET_TIMES * _buffer_bytes())
            if "TCP" in protocol:
                waiting_bytes += n_sockets * _unsent_bytes()
        return waiting_bytes + packets_sent(pid) * PACKET_BYTES
    return 0


def _sockets(pid: int) -> dict[str, int]:
    """How many there are in this process's network, by protocol: `{"UNIX-STREAM": 4, "TCP": 2}`."""
    with open(f"/proc/{pid}/net/protocols") as file:
        rows = [line.split()[:3] for line in file.readlines()[1:]]
    return {protocol: int(n_sockets) for protocol, _, n_sockets in rows if int(n_sockets) > 0}


def packets_sent(pid: int) -> int:
    """How many packets of IP have been sent in this process's network so far."""
    with open(f"/proc/{pid}/net/snmp") as file:
        names, figures = (line.split() for line in file if line.startswith("Ip:"))
    n_packets = int(dict(zip(names, figures, strict=True))["OutRequests"])
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/net/snmp6") as file:
        n_packets += next(int(line.split()[1]) for line in file if line.startswith("Ip6OutRequests"))
    return n_packets


@functools.cache
def _buffer_bytes() -> int:
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


@functools.cache
def _unsent_bytes() -> int:
    """The most that a TCP socket may have in line to be sent."""
    with contextlib.suppress(OSError), open("/proc/sys/net/ipv4/tcp_wmem") as file:
        return min(int(file.read().split()[2]), _MOST_UNSENT_BYTES)
    return _MOST_UNSENT_BYTES


def shared_mappings(pids: Iterable[int]) -> dict[tuple[str, str], int]:
    """The writable shared memory that these processes have mapped: bytes by what is behind it, each once."""
    found: dict[tuple[str, str], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as file:
            for line in file:
                addresses, rights, _, device, inode, *_ = line.split()
                if rights[1] == "w" and rights[3] == "s":
                    first, last = (int(address, 16) for address in addresses.split("-"))
                    found[device, inode] = found.get((device, inode), 0) + last - first
    return found


def cpu_s(pid: int, with_children: bool = True) -> float:
    """CPU time of a process, with that of the children that it has waited for; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0.0
    return sum(map(int, fields[11 : 15 if with_children else 13])) / _CLOCK_TICKS


def waited_s(pid: int) -> float:
    """How long the threads of a process could have run and stood in line for a processor; 0 when it is gone."""
    found_ns = 0
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/schedstat") as file:
                found_ns += int(file.read().split()[1])
    return found_ns / 1e9


def together_bytes(pids: Iterable[int], inherited: Memory, most_bytes: int, networks: Iterable[int] = ()) -> int:
    """What these processes hold together. Exact, and slower, only where a first look says that it may be too much.

    inherited: what each began with, as a fork of this process. most_bytes: what would be too much. networks: a process
    in each network that is theirs alone. While it is looked at exactly they stand still, or they would take more the
    longer it lasts.
    """
    pids = list(pids)
    figures = [memory_of(pid) for pid in pids]
    unshared_bytes = inherited.addresses_bytes - inherited.data_bytes
    mapped_bytes = sum(max(m.addresses_bytes - m.data_bytes - unshared_bytes, 0) for m in figures)
    kernels_bytes = sum(m.tables_bytes for m in figures) + sum(map(sockets_bytes, networks))
    estimate = sum(m.resident_bytes for m in figures) + mapped_bytes + kernels_bytes
    if estimate <= most_bytes:
        return estimate
    with _standing_still(pids):
        return sum(map(_proportional_bytes, pids)) + sum(shared_mappings(pids).values()) + kernels_bytes


def pause_s(took_s: float, room_bytes: int) -> float:
    """How long to wait with the next look: longer after a slow one, but not until what is left could be filled."""
    until_filled_s = room_bytes / (_FILLED_BYTES_PER_S * len(os.sched_getaffinity(0)))
    return max(LOOK_S, min(2 * took_s, until_filled_s))


@contextlib.contextmanager
def _standing_still(pids: list[int]) -> Iterator[None]:
    try:
        for pid in pids:
            with gone_is_fine():
                os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with gone_is_fine():
                os.kill(pid, signal.SIGCONT)


def _proportional_bytes(pid: int) -> int:
    """Private memory, and its share of what is common to several processes and is no file's."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(("Pss_Anon:", "SwapPss:")))
    except PermissionError:
        # It hides its share: all of it, then.
        return memory_of(pid).resident_bytes
    except OSError:
        return 0
