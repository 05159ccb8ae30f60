"""A seccomp filter: system calls that no honest answer makes and that a kernel has had its holes in are refused, and
those by which a job could tell another something, or keep memory that nobody counts.

Every older call that is not named here is allowed, because the namespaces, the user and Landlock already bound what the
ordinary calls can reach. Sockets are for the own machine only: Unix ones, and the internet's where loopback is granted.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Sequence

from grading.worker.confine import system
from grading.worker.confine.plan import NO_FILES

_MODE_FILTER = 2
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AT_NUMBER, _AT_ARCH, _AT_ARGUMENTS = 0, 4, 16
_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000

# fmt: off
# Name: number on x86_64, on aarch64 (None where that has no such call).
REFUSED = {
    # other namespaces, other roots, other file systems
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "swapon": (167, 224), "swapoff": (168, 225),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # what outlives a process, or is shared beside the files
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # memory that no limit counts: pages, rules, filters
    "memfd_secret": (447, 447), "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446), "seccomp": (317, 277),
    # the kernel's larger machines
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
    "io_setup": (206, 0), "io_submit": (209, 2), "vmsplice": (278, 75),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # the machine itself
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "syslog": (103, 116), "acct": (163, 89),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58), "personality": (135, 92),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
    "lookup_dcookie": (212, 18),
}
# Refused as if the kernel had none: callers fall back to a call that is allowed, or do without.
ABSENT = {
    "clone3": (435, 435), "memfd_create": (319, 279),
    # who else has, watches or has read a file that all may only read; and what drops it from the kernel's cache
    "flock": (73, 32), "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "mincore": (27, 232), "preadv2": (327, 286), "cachestat": (451, 451), "fadvise64": (221, 223),
    "readahead": (187, 213),
    # what the whole machine does: how many processes and how much memory there are, what others have yet to write
    "sysinfo": (99, 179), "sync": (162, 81), "syncfs": (306, 267),
    # a byte that is moved into a pipe by reference keeps all of the block that it came in
    "splice": (275, 76), "tee": (276, 77),
}
# Absent without loopback: what an epoll has to watch is kept by the kernel until all of the user's together are 4 % of
# the machine's memory, and another job of the same user could watch nothing then. Gloo waits so.
ABSENT_WITHOUT_LOOPBACK = {"epoll_create": (213, None), "epoll_create1": (291, 20)}
# Refused to a job whose memory is watched: what is in a socket's queue is no process's. Its channel is one already.
REFUSED_WHERE_WATCHED = {"socket": (41, 198), "socketpair": (53, 199)}
# Not carried out, though the caller is told that it was. The kernel shares processors out by session: a job has one.
IN_NAME_ONLY = {"setsid": (112, 157)}
# Decided by what they are called with.
BY_ARGUMENTS = {
    "clone": (56, 220), "fcntl": (72, 25), "madvise": (28, 233), "prctl": (157, 167), "mmap": (9, 222),
    "setsockopt": (54, 208), "socket": (41, 198),
}
# fmt: on
_NAMESPACES = 0x7E020080
"""Every CLONE_NEW* flag of clone(2)."""
_LOCKS_AND_WATCHES = (5, 6, 7, 36, 37, 38, 1024, 1025, 1026)
"""F_GETLK, F_SETLK, F_SETLKW, the same for F_OFD_, F_SETLEASE, F_GETLEASE, F_NOTIFY."""
_HINTS = (1035, 1036, 1037, 1038)
"""F_GET_RW_HINT, F_SET_RW_HINT and the same for F_..._FILE_...: a note that the kernel keeps with a file for all."""
_SETPIPE_SZ = 1031
_MAP_SHARED, _MAP_ANONYMOUS, _MAP_HUGETLB = 0x01, 0x20, 0x40000
_ADVICE = (12, 20, 21)
"""MADV_MERGEABLE, MADV_COLD, MADV_PAGEOUT: pages shared with other programs, and pages of files pushed out."""
_SETTINGS = (4, 22, 62, 67)
"""PR_SET_DUMPABLE, by which a process hides its memory; PR_SET_SECCOMP; PR_SCHED_CORE, by which it keeps a core's other
half idle; PR_SET_MEMORY_MERGE."""
_LATER_SETTINGS = 69
"""The first option of prctl beyond those that were looked at: none later is needed. PR_FUTEX_HASH (78) takes a gigabyte
of the kernel's memory for each process."""
_LATER = 452
"""The first system call beyond those that were looked at, on both machines. Programs do without what is so young."""
_SOL_SOCKET = 1
_BUFFER_SIZES = (7, 8, 32, 33)
"""SO_SNDBUF, SO_RCVBUF and their FORCE variants: the kernel's memory, which no limit of a process counts."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE = 0

_Test = tuple[int, int, str, str]
"""Code, value, and where it leads if so and if not: "allow", "refuse" or "" for the next."""


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def restrict(grants: Sequence[str] = ()) -> None:
    """Install the filter for this process and its children. Raises OSError; no_new_privs must have been set."""
    code = program(system.machine(), grants)
    buffer = ctypes.create_string_buffer(code)
    filter_ = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    zero = ctypes.c_ulong(0)
    system.call("prctl", system.PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(filter_), zero, zero)


def program(machine: str, grants: Sequence[str] = ()) -> bytes:
    """The filter for a machine as BPF instructions. Raises OSError for one that it was not written for."""
    if machine not in _ARCH:
        raise OSError(errno.ENOSYS, f"seccomp: no table of system calls for {machine}")
    column = tuple(_ARCH).index(machine)
    code = [
        _instruction(_LOAD, _AT_ARCH),
        _instruction(_JUMP_EQUAL, _ARCH[machine], 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _AT_NUMBER),
        _instruction(_JUMP_ABOVE, _X32, 0, 1),
        _instruction(_RETURN, _KILL),
        _instruction(_JUMP_ABOVE, _LATER, 0, 1),
        _instruction(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    absent = ABSENT | ({} if "loopback" in grants else ABSENT_WITHOUT_LOOPBACK)
    refused = REFUSED | (REFUSED_WHERE_WATCHED if NO_FILES in grants else {})
    # torchrun ends its ranks session by session.
    in_name_only = {} if "subprocess" in grants else IN_NAME_ONLY
    for table, answer in ((refused, errno.EPERM), (absent, errno.ENOSYS), (in_name_only, 0)):
        for numbers in table.values():
            if numbers[column] is not None:
                code += [_instruction(_JUMP_EQUAL, numbers[column], 0, 1), _instruction(_RETURN, _ERRNO | answer)]
    for name, (tests, answer) in _by_arguments("loopback" in grants).items():
        code += _decided(BY_ARGUMENTS[name][column], tests, answer)
    code.append(_instruction(_RETURN, _ALLOW))
    return b"".join(code)


def _by_arguments(loopback: bool) -> dict[str, tuple[list[_Test], int]]:
    """What is asked of the arguments of a call, and the error where they are refused; what leads nowhere is allowed."""
    unix = (_JUMP_EQUAL, _AF_UNIX, "allow", "" if loopback else "refuse")
    # What interfaces there are is asked through a socket too: gloo does, before it binds to the loopback one.
    internet = [
        (_JUMP_EQUAL, _AF_INET, "allow", ""),
        (_JUMP_EQUAL, _AF_INET6, "allow", ""),
        (_JUMP_EQUAL, _AF_NETLINK, "", "refuse"),
        _argument(2),
        (_JUMP_EQUAL, _NETLINK_ROUTE, "allow", "refuse"),
    ]
    return {
        "clone": ([_argument(0), (_JUMP_ANY_BIT, _NAMESPACES, "refuse", "allow")], errno.EPERM),
        "fcntl": ([_argument(1), *_one_of((*_LOCKS_AND_WATCHES, _SETPIPE_SZ, *_HINTS))], errno.EPERM),
        "madvise": ([_argument(2), *_one_of(_ADVICE)], errno.EINVAL),
        "prctl": ([_argument(0), (_JUMP_ABOVE, _LATER_SETTINGS, "refuse", ""), *_one_of(_SETTINGS)], errno.EPERM),
        # Shared memory without a file keeps its pages when nobody has them mapped, and no limit counts those, nor
        # pages out of the machine's store of large ones.
        "mmap": (
            [
                _argument(3),
                (_JUMP_ANY_BIT, _MAP_HUGETLB, "refuse", ""),
                (_JUMP_ANY_BIT, _MAP_ANONYMOUS, "", "allow"),
                (_JUMP_ANY_BIT, _MAP_SHARED, "refuse", "allow"),
            ],
            errno.EPERM,
        ),
        "setsockopt": (
            [_argument(1), (_JUMP_EQUAL, _SOL_SOCKET, "", "allow"), _argument(2), *_one_of(_BUFFER_SIZES)],
            errno.EPERM,
        ),
        "socket": ([_argument(0), unix, *(internet if loopback else [])], errno.EACCES),
    }


def _argument(index: int) -> _Test:
    """Load the lower half of an argument."""
    return _LOAD, _AT_ARGUMENTS + 8 * index, "", ""


def _one_of(values: Sequence[int]) -> list[_Test]:
    return [(_JUMP_EQUAL, value, "refuse", "") for value in values]


def _decided(number: int, tests: Sequence[_Test], answer: int) -> list[bytes]:
    """Instructions that decide a call by these tests, and skip over themselves where it is another call."""
    code = [_instruction(_JUMP_EQUAL, number, 0, len(tests) + 2)]
    for at, (kind, value, if_so, if_not) in enumerate(tests, 1):
        skipped = {"": 0, "allow": len(tests) - at, "refuse": len(tests) - at + 1}
        code.append(_instruction(kind, value, skipped[if_so], skipped[if_not]))
    return [*code, _instruction(_RETURN, _ALLOW), _instruction(_RETURN, _ERRNO | answer)]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
