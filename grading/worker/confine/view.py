"""Lay out a root of its own for the worker: the libraries read-only, a few devices, and nothing else of the machine.

Built once per forking process, before anything is loaded. Temporary space and /proc are each job's own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from grading.worker.confine import system
from grading.worker.confine.plan import Limits, Place

DEVICES = ("null", "full", "random", "urandom")
"""Not zero: mapped, it is shared memory that no limit counts."""
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_SAFE = system.MS_RDONLY | system.MS_NOSUID | system.MS_NODEV


def enter_view(root: str, places: Sequence[Place]) -> None:
    """Make `root`, an empty folder, the root of this process's mount namespace with these places in it.

    Raises OSError.
    """
    os.umask(0o022)
    system.mount(None, "/", flags=system.MS_REC | system.MS_PRIVATE)
    system.mount("none", root, "tmpfs", system.MS_NOSUID | system.MS_NODEV, "mode=755,size=1m")
    for name in ("tmp", "proc", "dev/shm"):
        os.makedirs(f"{root}/{name}")
    # What is loaded may want it; jobs have one of their own.
    system.mount("none", f"{root}/tmp", "tmpfs", system.MS_NOSUID | system.MS_NODEV, "mode=700,size=16m")
    for place in places:
        _lay(root, place)
    for name in DEVICES:
        Path(f"{root}/dev/{name}").touch()
    for name, to in DEVICE_LINKS.items():
        os.symlink(to, f"{root}/dev/{name}")
    # The forking process looks after its jobs through the machine's own; a job sees one of its own on top of it.
    system.mount("/proc", f"{root}/proc", flags=system.MS_BIND | system.MS_REC)
    system.restrict_mounts(root, _SAFE)
    system.mount(None, f"{root}/tmp", flags=system.MS_REMOUNT | system.MS_BIND | system.MS_NOSUID | system.MS_NODEV)
    for name in DEVICES:
        # After everything was restricted, which would make them unusable.
        system.mount(f"/dev/{name}", f"{root}/dev/{name}", flags=system.MS_BIND)
    system.pivot_root(root)


def _lay(root: str, place: Place) -> None:
    target = root + place.path
    if place.how == "link":
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.readlink(place.path), target)
        return
    if place.how == "cover":
        system.mount("none", target, "tmpfs", _SAFE & ~system.MS_RDONLY, "mode=755,size=1m")
        return
    source = place.source or place.path
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
        system.mount(source, target, flags=system.MS_BIND | system.MS_REC)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        Path(target).touch()
        system.mount(source, target, flags=system.MS_BIND)


def give_private_space(limits: Limits, places: Sequence[Place]) -> None:
    """In a job's own mount namespace: its /tmp, /dev/shm and /proc, and devices that are nobody's to mark.

    Planned places that lie in there are kept.
    """
    safe = system.MS_NOSUID | system.MS_NODEV
    size = f"mode=1777,size={limits.disk_bytes},nr_inodes={limits.n_files}"
    inside = [place.path for place in places if place.path.startswith("/tmp/")]
    kept = {path: os.open(path, os.O_PATH) for path in inside}
    system.mount("none", "/tmp", "tmpfs", safe, size)
    for path, descriptor in kept.items():
        os.makedirs(path)
        system.mount(f"/proc/self/fd/{descriptor}", path, flags=system.MS_BIND)
        os.close(descriptor)
    system.mount("none", "/dev/shm", "tmpfs", safe | system.MS_NOEXEC, size)
    for name in (*DEVICES, "zero"):
        if os.path.exists(f"/dev/{name}"):
            # It can still be written to, but whoever can write to it could set its time, which others read.
            system.restrict_mounts(f"/dev/{name}", system.MS_RDONLY | system.MS_NOSUID)
    # Of processes alone: the rest is figures of the whole machine, by which jobs could tell what others do.
    system.mount("proc", "/proc", "proc", safe | system.MS_NOEXEC | system.MS_RDONLY, "subset=pid")
