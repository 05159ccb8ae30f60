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
from grading.isolation.tiers import FIXES
from grading.remains import remove_at_the_end
from grading.worker.confine.tier import Tier


@dataclass(frozen=True)
class TierFinding:
    """Whether a tier works here; if not, why not and what to do about it."""

    tier: Tier
    works: bool
    reason: str = ""
    fix: str = ""


class _TierUnavailable(Exception):
    """A tier does not work here: why not, and what to do about it."""


def try_tier(tier: Tier) -> TierFinding:
    """Try a tier, once in this process's life where it works. What is in its way may pass: it is tried again."""
    try:
        return _working(tier)
    except _TierUnavailable as unavailable:
        return TierFinding(tier, False, *unavailable.args)


@functools.cache
def _working(tier: Tier) -> TierFinding:
    """Raises _TierUnavailable, which is not kept."""
    fix = FIXES[tier]
    if not sys.platform.startswith("linux"):
        raise _TierUnavailable(f"it is for Linux, and this is {sys.platform}", "grade on a Linux machine")
    if tier.in_bubblewrap and not bwrap.is_installed():
        raise _TierUnavailable("the program bwrap is not installed", fix)
    # Imported late: most who ask for this package start nothing.
    from grading.isolation.faults import InfrastructureFault
    from grading.isolation.sandbox import Sandbox
    from grading.isolation.worker_tree import shared_worker_tree

    try:
        with Sandbox(tier, shared_worker_tree(), preload=()) as sandbox:
            breaches = _try(sandbox)
            n_left = len(sandbox.job_processes())
    except (InfrastructureFault, TimeoutError, OSError, ValueError, KeyError) as error:
        raise _TierUnavailable(f"it could not be set up: {error}", fix) from error
    if breaches or n_left:
        escapes = ", ".join([*breaches, *(["leave a process behind"] if n_left else [])])
        raise _TierUnavailable(f"a program in it could {escapes}", f"report this as a hole; {fix}")
    return TierFinding(tier, True)


def _try(sandbox) -> dict[str, str]:
    name = f"labs-{secrets.token_hex(8)}"
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        remove_at_the_end(folder)
        Path(folder).chmod(0o755)
        secret = Path(folder) / "secret"
        secret.write_text("secret")
        secret.chmod(0o644)
        unix.bind(f"\0{name}")
        unix.listen()
        targets = {"secret": str(secret), "library": library_paths()[-1], "port": tcp.getsockname()[1], "name": name}
        breaches = sandbox.run_trial({**targets, "pid": os.getpid(), "uid": os.geteuid()})
        sandbox.kill_job()
    return breaches
