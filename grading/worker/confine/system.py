"""The system calls that Python has no function for. Thin: each raises OSError with the call's name."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
PR_SET_SECCOMP, PR_CAPBSET_DROP = 22, 24
PR_SET_NO_NEW_PRIVS, PR_SET_THP_DISABLE = 38, 41

_CLONE = {"x86_64": 56, "aarch64": 220}
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR = {MS_RDONLY: 1, MS_NOSUID: 2, MS_NODEV: 4, MS_NOEXEC: 8}
_LAST_CAPABILITY = 63
_MADV_COLLAPSE = 25

_libc = ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    """ "x86_64" or "aarch64", as the kernel names it."""
    return platform.machine()


def call(name: str, *args: object) -> int:
    """A function of the C library. Raises OSError."""
    return _checked(name, getattr(_libc, name)(*args))


def syscall(name: str, number: int, *args: object) -> int:
    """A system call by its number; `name` is for the error. Raises OSError."""
    return _checked(name, _libc.syscall(ctypes.c_long(number), *args))


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    call("unshare", flags)


def clone(flags: int) -> int:
    """Fork into the new namespaces that `flags` ask for; only for a process with one thread."""
    return syscall("clone", _CLONE[machine()], ctypes.c_ulong(flags | signal.SIGCHLD), *[ctypes.c_ulong(0)] * 4)


def prctl(option: int, value: int = 0) -> None:
    """prctl with one argument; the others are 0."""
    zero = ctypes.c_ulong(0)
    call("prctl", option, ctypes.c_ulong(value), zero, zero, zero)


def collapse(start: int, size: int) -> None:
    """Put the memory at this address into large pages at once (madvise, Linux 6.1)."""
    call("madvise", ctypes.c_void_p(start), ctypes.c_size_t(size), _MADV_COLLAPSE)


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    source_, target_, kind_, data_ = texts
    try:
        call("mount", source_, target_, kind_, ctypes.c_ulong(flags), data_)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({target})") from error


def restrict_mounts(target: str, flags: int) -> None:
    """Add MS_* flags to the mount at `target` and to every one below it (mount_setattr, Linux 5.12)."""
    attributes = sum(bit for flag, bit in _MOUNT_ATTR.items() if flags & flag)
    buffer = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    path = os.fsencode(target)
    syscall(
        "mount_setattr", _MOUNT_SETATTR, _AT_FDCWD, path, _AT_RECURSIVE, ctypes.byref(buffer), ctypes.sizeof(buffer)
    )


def pivot_root(folder: str) -> None:
    """Make `folder` the root, and let go of the old one."""
    os.chdir(folder)
    call("pivot_root", b".", b".")
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")


def drop_bounding_set() -> None:
    """No program that this process starts may have any capability; where it may not say so, it has none to give."""
    with contextlib.suppress(OSError):
        for capability in range(_LAST_CAPABILITY + 1):
            prctl(PR_CAPBSET_DROP, capability)


def drop_capabilities() -> None:
    """Give up every capability."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def has_capability(capability: int) -> bool:
    """Whether this process has the capability in effect."""
    with open("/proc/self/status") as file:
        effective = next(line for line in file if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> capability & 1)
