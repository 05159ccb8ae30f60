"""Landlock: from here on this process reads what it sees, writes to its temporary space, and nothing else.

A second wall behind the small view of the files: it also holds for /proc, where a process could otherwise reset its
own memory records, and it keeps a process from signalling or tracing anybody outside (ABI 6).
"""

from __future__ import annotations

import ctypes
import os

from grading.worker.confine import system

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_IOCTL_DEV = 1 << 15
_RIGHTS = {1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 4: 1 << 15}
"""By ABI, the first bit beyond the file rights that it knows; from 5 on they go up to `_IOCTL_DEV`."""
_TCP = 3
_SCOPES = 3
_WRITABLE = ("/tmp", "/dev/shm")
_DEVICES = ("/dev/null", "/dev/full")
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | _IOCTL_DEV


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def abi() -> int:
    """The version of Landlock that the kernel has; 0 for none."""
    try:
        return system.syscall("landlock_create_ruleset", _CREATE, None, 0, 1)
    except OSError:
        return 0


def restrict(loopback: bool) -> None:
    """Restrict this process and all its children. Raises OSError where the kernel has no Landlock."""
    version = abi()
    handled = _RIGHTS.get(version, 1 << 16) - 1
    network = _TCP if version >= 4 and not loopback else 0
    ruleset = _Ruleset(handled, network, _SCOPES if version >= 6 else 0)
    # An older kernel takes a shorter structure.
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    descriptor = system.syscall("landlock_create_ruleset", _CREATE, ctypes.byref(ruleset), size, 0)
    try:
        _allow(descriptor, "/", _READ & handled)
        for path in _WRITABLE:
            _allow(descriptor, path, handled & ~(_MAKE_CHAR | _MAKE_BLOCK))
        for path in _DEVICES:
            _allow(descriptor, path, (_READ_FILE | _WRITE_FILE) & handled)
        system.syscall("landlock_restrict_self", _RESTRICT, descriptor, 0)
    finally:
        os.close(descriptor)


def _allow(ruleset: int, path: str, rights: int) -> None:
    if not os.path.exists(path):
        return
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = rights if os.path.isdir(path) else rights & _FILE_ONLY
        beneath = _Beneath(rights, descriptor)
        system.syscall("landlock_add_rule", _ADD, ruleset, 1, ctypes.byref(beneath), 0)
    finally:
        os.close(descriptor)
