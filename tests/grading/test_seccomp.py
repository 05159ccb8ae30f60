"""The system call filter, run instruction by instruction as the kernel would, for both machines."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from grading.worker.confine.seccomp import _ARCH, ABSENT, REFUSED, program

ALLOW, KILL = "allow", "kill"
CLONE, SOCKET = {"x86_64": 56, "aarch64": 220}, {"x86_64": 41, "aarch64": 198}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def verdict(machine: str, number: int, *args: int, arch: int | None = None, loopback: bool = False) -> str | int:
    """What the filter says of a call: "allow", "kill" or an error number."""
    code = list(struct.iter_unpack("=HBBI", program(machine, loopback)))
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


@pytest.mark.parametrize("machine", _ARCH)
def test_each_named_call_is_refused_and_all_others_pass(machine: str) -> None:
    column = tuple(_ARCH).index(machine)
    refused = {numbers[column] for numbers in REFUSED.values()} - {None}
    absent = {numbers[column] for numbers in ABSENT.values()}
    for number in range(600):
        wanted = errno.EPERM if number in refused else errno.ENOSYS if number in absent else ALLOW
        if number != SOCKET[machine]:
            assert verdict(machine, number) == wanted, number


@pytest.mark.parametrize("machine", _ARCH)
def test_a_clone_makes_threads_and_processes_but_no_namespace(machine: str) -> None:
    assert verdict(machine, CLONE[machine], 0x3D0F00) == ALLOW
    assert verdict(machine, CLONE[machine], 17) == ALLOW
    for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, CLONE[machine], 17 | flag) == errno.EPERM


@pytest.mark.parametrize("machine", _ARCH)
def test_sockets_are_for_this_machine_and_loopback_where_granted(machine: str) -> None:
    families = range(46)
    assert [f for f in families if verdict(machine, SOCKET[machine], f) == ALLOW] == [1]
    assert [f for f in families if verdict(machine, SOCKET[machine], f, loopback=True) == ALLOW] == [1, 2, 10, 16]
    # Of netlink, which interfaces and routes there are, and nothing else of the kernel's.
    protocols = range(24)
    assert [p for p in protocols if verdict(machine, SOCKET[machine], 16, 3, p, loopback=True) == ALLOW] == [0]
    assert verdict(machine, SOCKET[machine], 16) == errno.EACCES


@pytest.mark.parametrize("machine", _ARCH)
def test_memory_that_no_limit_counts_is_refused(machine: str) -> None:
    mmap = {"x86_64": 9, "aarch64": 222}[machine]
    private, shared, validated, anonymous = 2, 1, 3, 0x20
    assert verdict(machine, mmap, 0, 4096, 3, private | anonymous) == ALLOW
    assert verdict(machine, mmap, 0, 4096, 3, shared) == ALLOW
    assert verdict(machine, mmap, 0, 4096, 3, shared | anonymous) == errno.EPERM
    assert verdict(machine, mmap, 0, 4096, 3, validated | anonymous) == errno.EPERM
    setsockopt = {"x86_64": 54, "aarch64": 208}[machine]
    refused = [option for option in range(80) if verdict(machine, setsockopt, 5, 1, option) != ALLOW]
    assert refused == [7, 8, 32, 33]
    assert verdict(machine, setsockopt, 5, 6, 7) == ALLOW


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
    for name, numbers in {**REFUSED, **ABSENT}.items():
        assert numbers[column] == known.get(name), name


def test_a_machine_without_a_table_is_refused() -> None:
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        program("riscv64", False)
