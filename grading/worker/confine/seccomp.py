"""A seccomp filter: system calls that no honest answer makes and that a kernel has had its holes in are refused.

Everything that is not named here is allowed, because the namespaces, the user and Landlock already bound what the
ordinary calls can reach. Sockets are for the own machine only: Unix ones, and the internet's where loopback is granted.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from grading.worker.confine import system

_MODE_FILTER = 2
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AT_NUMBER, _AT_ARCH, _AT_ARG0, _AT_ARG1, _AT_ARG2, _AT_ARG3 = 0, 4, 16, 24, 32, 40
_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_NAMESPACES = 0x7E020080
"""Every CLONE_NEW* flag of clone(2)."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE = 0

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
    # memory that no limit counts
    "memfd_secret": (447, 447),
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
# Refused to ranks: by these one can tell what another does with a file that both may only read.
REFUSED_TO_RANKS = {
    "flock": (73, 32), "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "mincore": (27, 232), "preadv2": (327, 286), "cachestat": (451, 451),
}
# Refused as if the kernel had none: callers fall back to a call that is allowed or to a file.
ABSENT = {"clone3": (435, 435), "memfd_create": (319, 279)}
# fmt: on
_CLONE = {"x86_64": 56, "aarch64": 220}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_SETSOCKOPT = {"x86_64": 54, "aarch64": 208}
_MMAP = {"x86_64": 9, "aarch64": 222}
_FCNTL = {"x86_64": 72, "aarch64": 25}
_LOCKS_AND_WATCHES = (5, 6, 7, 36, 37, 38, 1024, 1025, 1026)
"""F_GETLK, F_SETLK, F_SETLKW, the same for F_OFD_, F_SETLEASE, F_GETLEASE, F_NOTIFY."""
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_SOL_SOCKET = 1
_BUFFER_SIZES = (7, 8, 32, 33)
"""SO_SNDBUF, SO_RCVBUF and their FORCE variants: the kernel's memory, which no limit of a process counts."""


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def restrict(loopback: bool, is_rank: bool = False) -> None:
    """Install the filter for this process and its children. Raises OSError; no_new_privs must have been set."""
    code = program(system.machine(), loopback, is_rank)
    buffer = ctypes.create_string_buffer(code)
    filter_ = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    zero = ctypes.c_ulong(0)
    system.call("prctl", system.PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(filter_), zero, zero)


def program(machine: str, loopback: bool, is_rank: bool = False) -> bytes:
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
    ]
    refused = REFUSED | (REFUSED_TO_RANKS if is_rank else {})
    for table, number in ((refused, errno.EPERM), (ABSENT, errno.ENOSYS)):
        for numbers in table.values():
            if numbers[column] is not None:
                code += [_instruction(_JUMP_EQUAL, numbers[column], 0, 1), _instruction(_RETURN, _ERRNO | number)]
    code += [
        _instruction(_JUMP_EQUAL, _CLONE[machine], 0, 3),
        _instruction(_LOAD, _AT_ARG0),
        _instruction(_JUMP_ANY_BIT, _NAMESPACES, 0, 1),
        _instruction(_RETURN, _ERRNO | errno.EPERM),
        _instruction(_LOAD, _AT_NUMBER),
    ]
    if is_rank:
        checks = len(_LOCKS_AND_WATCHES)
        code += [_instruction(_JUMP_EQUAL, _FCNTL[machine], 0, checks + 3), _instruction(_LOAD, _AT_ARG1)]
        code += [_instruction(_JUMP_EQUAL, each, checks - at, 0) for at, each in enumerate(_LOCKS_AND_WATCHES)]
        code += [_instruction(_RETURN, _ALLOW), _instruction(_RETURN, _ERRNO | errno.EPERM)]
    # Shared memory without a file keeps its pages when nobody has them mapped, and no limit counts those.
    code += [
        _instruction(_JUMP_EQUAL, _MMAP[machine], 0, 5),
        _instruction(_LOAD, _AT_ARG3),
        _instruction(_JUMP_ANY_BIT, _MAP_ANONYMOUS, 0, 2),
        _instruction(_JUMP_ANY_BIT, _MAP_SHARED, 0, 1),
        _instruction(_RETURN, _ERRNO | errno.EPERM),
        _instruction(_LOAD, _AT_NUMBER),
    ]
    checks = len(_BUFFER_SIZES)
    code += [
        _instruction(_JUMP_EQUAL, _SETSOCKOPT[machine], 0, checks + 5),
        _instruction(_LOAD, _AT_ARG1),
        _instruction(_JUMP_EQUAL, _SOL_SOCKET, 0, checks + 1),
        _instruction(_LOAD, _AT_ARG2),
    ]
    code += [_instruction(_JUMP_EQUAL, option, checks - index, 0) for index, option in enumerate(_BUFFER_SIZES)]
    code += [
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _ERRNO | errno.EPERM),
    ]
    families = (_AF_UNIX, _AF_INET, _AF_INET6) if loopback else (_AF_UNIX,)
    # What interfaces there are is asked through a socket too: gloo does, before it binds to the loopback one.
    asking = [
        _instruction(_JUMP_EQUAL, _AF_NETLINK, 0, 2),
        _instruction(_LOAD, _AT_ARG2),
        _instruction(_JUMP_EQUAL, _NETLINK_ROUTE, 1, 0),
    ]
    asking = asking if loopback else []
    n_left = len(families) + len(asking)
    code += [_instruction(_JUMP_EQUAL, _SOCKET[machine], 0, n_left + 2), _instruction(_LOAD, _AT_ARG0)]
    for index, family in enumerate(families):
        code.append(_instruction(_JUMP_EQUAL, family, n_left - index, 0))
    code += asking
    code += [_instruction(_RETURN, _ERRNO | errno.EACCES), _instruction(_RETURN, _ALLOW)]
    return b"".join(code)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
