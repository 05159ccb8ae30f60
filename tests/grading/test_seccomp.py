"""The system call filter, run instruction by instruction as the kernel would, for both machines."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from grading.worker.confine.plan import NO_FILES, RANK
from grading.worker.confine.seccomp import (
    _ARCH,
    ABSENT,
    ABSENT_WITHOUT_LOOPBACK,
    BY_ARGUMENTS,
    IN_NAME_ONLY,
    REFUSED,
    REFUSED_WHERE_WATCHED,
    program,
)

ALLOW, KILL = "allow", "kill"
PROFILES = [(), ("loopback",), ("loopback", "files", "subprocess"), (NO_FILES,), (RANK,), (NO_FILES, RANK)]
"""Grants of jobs that there are."""
NEWEST = 451
"""The last call that the table knows, cachestat of Linux 6.5."""
NEW = ("cachestat",)
"""Calls that headers of Linux before 6.5 lack."""
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def verdict(
    machine: str, call: int | str, *args: int, arch: int | None = None, grants: tuple[str, ...] = ()
) -> str | int:
    """What the filter says of a call by its number or name: "allow", "kill" or an error number."""
    tables = {**BY_ARGUMENTS, **REFUSED, **ABSENT, **REFUSED_WHERE_WATCHED, **IN_NAME_ONLY}
    tables |= ABSENT_WITHOUT_LOOPBACK
    number = tables[call][tuple(_ARCH).index(machine)] if isinstance(call, str) else call
    code = list(struct.iter_unpack("=HBBI", program(machine, grants)))
    data = struct.pack("=IIQ", number, _ARCH[machine] if arch is None else arch, 0) + struct.pack(
        "=6Q", *args, *[0] * (6 - len(args))
    )
    accumulator = position = 0
    while True:
        kind, if_true, if_false, value = code[position]
        position += 1
        if kind == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif kind == 0x06:
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(value, value & 0xFFFF)
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[kind]
            position += if_true if holds else if_false


@pytest.mark.parametrize("grants", PROFILES, ids="+".join)
@pytest.mark.parametrize("machine", _ARCH)
def test_each_named_call_is_refused_and_all_others_pass(machine: str, grants: tuple[str, ...]) -> None:
    column = tuple(_ARCH).index(machine)
    answers = dict.fromkeys((numbers[column] for numbers in REFUSED.values()), errno.EPERM)
    answers |= dict.fromkeys((numbers[column] for numbers in ABSENT.values()), errno.ENOSYS)
    if "subprocess" not in grants:
        answers |= dict.fromkeys((numbers[column] for numbers in IN_NAME_ONLY.values()), 0)
    answers[BY_ARGUMENTS["socket"][column]] = errno.EACCES
    if NO_FILES in grants:
        answers |= dict.fromkeys((numbers[column] for numbers in REFUSED_WHERE_WATCHED.values()), errno.EPERM)
    if "loopback" not in grants:
        answers |= dict.fromkeys((numbers[column] for numbers in ABSENT_WITHOUT_LOOPBACK.values()), errno.ENOSYS)
    # As if this were the kernel that the table was written for.
    answers |= dict.fromkeys(range(NEWEST + 1, 600), errno.ENOSYS)
    for number in range(600):
        assert verdict(machine, number, grants=grants) == answers.get(number, ALLOW), number


@pytest.mark.parametrize("machine", _ARCH)
def test_a_clone_makes_threads_and_processes_but_no_namespace(machine: str) -> None:
    assert verdict(machine, "clone", 0x3D0F00) == ALLOW
    assert verdict(machine, "clone", 17) == ALLOW
    for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, "clone", 17 | flag) == errno.EPERM


@pytest.mark.parametrize("machine", _ARCH)
def test_sockets_are_for_this_machine_and_loopback_where_granted(machine: str) -> None:
    granted = ("loopback",)
    families = range(46)
    assert [f for f in families if verdict(machine, "socket", f) == ALLOW] == [1]
    assert [f for f in families if verdict(machine, "socket", f, grants=granted) == ALLOW] == [1, 2, 10, 16]
    # Of netlink, which interfaces and routes there are, and nothing else of the kernel's.
    protocols = range(24)
    assert [p for p in protocols if verdict(machine, "socket", 16, 3, p, grants=granted) == ALLOW] == [0]
    assert verdict(machine, "socket", 16) == errno.EACCES


@pytest.mark.parametrize("machine", _ARCH)
def test_a_watched_job_makes_no_socket(machine: str) -> None:
    """What is in its queue, and in that of one that nobody accepts, is in no process's record."""
    assert verdict(machine, "socketpair", 1) == ALLOW
    for call in ("socket", "socketpair"):
        assert verdict(machine, call, 1, grants=(NO_FILES,)) == errno.EPERM


@pytest.mark.parametrize("machine", _ARCH)
def test_a_session_begins_in_name_only(machine: str) -> None:
    """Each would have as large a share of the processors as a whole job; its caller goes on as if it had one."""
    assert verdict(machine, "setsid") == 0
    assert verdict(machine, "setsid", grants=("loopback", "files", "subprocess")) == ALLOW


@pytest.mark.parametrize("machine", _ARCH)
def test_memory_that_no_limit_counts_is_refused(machine: str) -> None:
    private, shared, validated, anonymous, large = 2, 1, 3, 0x20, 0x40000
    assert verdict(machine, "mmap", 0, 4096, 3, private | anonymous) == ALLOW
    assert verdict(machine, "mmap", 0, 4096, 3, shared) == ALLOW
    assert verdict(machine, "mmap", 0, 4096, 3, shared | anonymous) == errno.EPERM
    assert verdict(machine, "mmap", 0, 4096, 3, validated | anonymous) == errno.EPERM
    assert verdict(machine, "mmap", 0, 4096, 3, private | anonymous | large) == errno.EPERM
    refused = [option for option in range(80) if verdict(machine, "setsockopt", 5, 1, option) != ALLOW]
    assert refused == [7, 8, 32, 33]
    assert verdict(machine, "setsockopt", 5, 6, 7) == ALLOW


@pytest.mark.parametrize("machine", _ARCH)
def test_a_descriptor_can_be_copied_and_set_but_not_locked_watched_marked_or_given_a_larger_pipe(machine: str) -> None:
    refused = [command for command in range(1100) if verdict(machine, "fcntl", 3, command) != ALLOW]
    locks, leases_and_notices, pipe_size, hints = [5, 6, 7, 36, 37, 38], [1024, 1025, 1026], [1031], range(1035, 1039)
    assert refused == [*locks, *leases_and_notices, *pipe_size, *hints]


@pytest.mark.parametrize("machine", _ARCH)
def test_memory_is_given_back_but_not_pushed_out_or_shared(machine: str) -> None:
    """Pages of files could be dropped from the cache that all jobs share, equal pages be put together with others'."""
    refused = [advice for advice in range(110) if verdict(machine, "madvise", 0, 4096, advice) != ALLOW]
    mergeable, cold, pageout = 12, 20, 21
    assert refused == [mergeable, cold, pageout]


@pytest.mark.parametrize("machine", _ARCH)
def test_a_process_stays_as_readable_as_it_was(machine: str) -> None:
    refused = [option for option in range(100) if verdict(machine, "prctl", option) != ALLOW]
    dumpable, seccomp, sched_core, memory_merge, get_memory_merge = 4, 22, 62, 67, 68
    assert refused == [dumpable, seccomp, sched_core, memory_merge, *range(get_memory_merge + 1, 100)]


def test_another_machines_calls_are_not_taken_for_this_ones() -> None:
    assert verdict("x86_64", 0, arch=0x40000003) == KILL
    assert verdict("x86_64", 0x40000000) == KILL
    assert verdict("aarch64", 0, arch=_ARCH["x86_64"]) == KILL


@pytest.mark.parametrize("machine", _ARCH)
def test_the_numbers_are_the_kernels(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("the kernel's headers are not installed")
    text = HEADERS[machine].read_text()
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    column = tuple(_ARCH).index(machine)
    for table in (REFUSED, ABSENT, ABSENT_WITHOUT_LOOPBACK, REFUSED_WHERE_WATCHED, IN_NAME_ONLY, BY_ARGUMENTS):
        for name, numbers in table.items():
            if name in known or name not in NEW:
                assert numbers[column] == known.get(name), name


def test_a_machine_without_a_table_is_refused() -> None:
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        program("riscv64")
