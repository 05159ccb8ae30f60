"""Find out whether a tier works on this machine, by running a job in it that tries to get out.

A tier that cannot be set up, and one that lets anything through, both count as not working.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from grading.isolation import bwrap
from grading.isolation.plan import library_paths

TIERS = ("bwrap", "kernel")
"""The strongest first: a program that many rely on and a fresh sandbox for each submission, then our own."""
_FIXES = {
    "bwrap": "install bubblewrap (Debian, Ubuntu: apt install bubblewrap), use Linux 5.13 or newer with Landlock, "
    "and allow user namespaces if not root",
    "kernel": "use Linux 5.13 or newer with Landlock, as root or with user namespaces allowed "
    "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)",
}


@dataclass(frozen=True)
class Finding:
    """Whether a tier works here; if not, why not and what to do about it."""

    tier: str
    works: bool
    reason: str = ""
    fix: str = ""


class _Refused(Exception):
    """A tier does not work here: why not, and what to do about it."""


def try_tier(tier: str) -> Finding:
    """Try a tier, once in this process's life where it works. What is in its way may pass: it is tried again."""
    try:
        return _working(tier)
    except _Refused as refused:
        return Finding(tier, False, *refused.args)


@functools.cache
def _working(tier: str) -> Finding:
    """Raises _Refused, which is not kept."""
    if not sys.platform.startswith("linux"):
        raise _Refused(f"it is for Linux, and this is {sys.platform}", "grade on a Linux machine")
    if tier == "bwrap" and not bwrap.is_installed():
        raise _Refused("the program bwrap is not installed", _FIXES[tier])
    # Imported late: the supervisor asks this package how to start what is tried here.
    from grading.supervisor.sandbox import Forkserver, InfrastructureFault
    from grading.worker.wire.frames import WireError

    try:
        with Forkserver(tier, preload=()) as forkserver:
            breaches = _try(forkserver)
            n_left = len(forkserver.job_processes())
    except (InfrastructureFault, WireError, TimeoutError, OSError) as error:
        raise _Refused(f"it could not be set up: {error}", _FIXES[tier]) from error
    if breaches or n_left:
        told = ", ".join([*breaches, *(["leave a process behind"] if n_left else [])])
        raise _Refused(f"a program in it could {told}", f"report this as a hole; {_FIXES[tier]}")
    return Finding(tier, True)


def _try(forkserver) -> dict[str, str]:
    name = f"labs-{secrets.token_hex(8)}"
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        Path(folder).chmod(0o755)
        secret = Path(folder) / "secret"
        secret.write_text("secret")
        secret.chmod(0o644)
        unix.bind(f"\0{name}")
        unix.listen()
        targets = {"secret": str(secret), "library": library_paths()[-1], "port": tcp.getsockname()[1], "name": name}
        breaches = forkserver.run_trial({**targets, "pid": os.getpid(), "uid": os.geteuid()})
        forkserver.kill_job()
    return breaches
