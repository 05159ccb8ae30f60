"""The command that starts a worker in a sandbox of bubblewrap's.

bubblewrap makes the sandbox's namespaces and its view of the files; what a job gives up beyond that it gives up itself,
as in the kernel tier. Within the sandbox, jobs and the ranks of one are kept from one another by namespaces of their
own.
"""

from __future__ import annotations

import os
import shutil
from pathlib import PurePosixPath

from grading.worker.confine.plan import Plan
from grading.worker.confine.view import DEVICE_LINKS, DEVICES

PROGRAM = "bwrap"
_ANYBODY = ("CAP_SYS_ADMIN", "CAP_NET_ADMIN")
"""The worker gives jobs namespaces of their own, with a loopback interface that it switches on. No job keeps these."""
_AS_ROOT = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_CHOWN", "CAP_SYS_PTRACE", "CAP_SETPCAP")
"""Root's worker starts jobs under users of their own, ends them and reads their memory figures; no more."""


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


def command(plan: Plan, worker: list[str], environment: dict[str, str]) -> list[str]:
    """The worker's command in a sandbox. The sandbox ends with this process, and everything in it with the worker."""
    args = [shutil.which(PROGRAM) or PROGRAM, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    args += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "grader"]
    as_root = os.geteuid() == 0
    args += [] if as_root else ["--unshare-user"]
    args += ["--cap-drop", "ALL"]
    for capability in (*_ANYBODY, *(_AS_ROOT if as_root else ())):
        args += ["--cap-add", capability]
    size = str(plan.limits.disk_bytes)
    args += ["--proc", "/proc", *_devices()]
    for folder in ("/dev/shm", "/tmp"):
        args += ["--perms", "1777", "--size", size, "--tmpfs", folder]
    for path in _folders_above(plan):
        args += ["--perms", "0755", "--dir", path]
    for place in plan.places:
        if place.how == "bind":
            args += ["--ro-bind", place.source or place.path, place.path]
        elif place.how == "link":
            args += ["--symlink", os.readlink(place.path), place.path]
        else:
            args += ["--tmpfs", place.path]
    for place in plan.places:
        if place.how == "cover":
            args += ["--remount-ro", place.path]
    # Not what is mounted in them. What is writable there is each job's own.
    args += ["--remount-ro", "/dev", "--remount-ro", "/", "--clearenv"]
    for name, value in environment.items():
        args += ["--setenv", name, value]
    return [*args, "--chdir", "/tmp", "--", *worker]


def _devices() -> list[str]:
    """As in the kernel tier's view. bubblewrap's own /dev is its user's to mark with times, modes and attributes, which
    other jobs would read, and its terminals are counted for all.
    """
    args = ["--perms", "0755", "--tmpfs", "/dev"]
    for name in DEVICES:
        args += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    # Whatever wants it reads an end at once; the real one is shared memory that no limit counts.
    args += ["--dev-bind", "/dev/null", "/dev/zero"]
    for name, to in DEVICE_LINKS.items():
        args += ["--symlink", to, f"/dev/{name}"]
    return args


def _folders_above(plan: Plan) -> list[str]:
    """The folders that have to be made for the places; bubblewrap would make them for its own user alone."""
    above: list[str] = []
    for place in plan.places:
        if not any(place.path.startswith(f"{other.path}/") for other in plan.places):
            above += [str(folder) for folder in reversed(PurePosixPath(place.path).parents)][1:]
    return [path for path in dict.fromkeys(above) if path != "/tmp"]
