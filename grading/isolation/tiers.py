"""The tiers of isolation, their names, and how a worker is started in each.

The only place where a tier is told from another by its name. Whether one works on this machine is found out elsewhere
(`probe`).
"""

from __future__ import annotations

from grading.isolation import bwrap
from grading.worker.confine.plan import Plan
from grading.worker.confine.tier import Tier

AUTO = "auto"
"""What is asked for by one who leaves the choice to us."""
NONE = Tier("none")
LAYERED = Tier("layered", in_bubblewrap=True)
"""One sandbox for each worker, and in it for each job all that the kernel tier does."""
BWRAP = Tier("bwrap", in_bubblewrap=True, sandbox_per_submission=True)
KERNEL = Tier("kernel", enters_namespaces=True)
ISOLATING = (LAYERED, BWRAP, KERNEL)
"""In the order in which "auto" tries them: those whose outer wall is a program that many rely on, then our own."""
TIERS = tuple(tier.name for tier in ISOLATING)
"""The names of the tiers that isolate."""
CHOICES = (AUTO, *TIERS, NONE.name)
"""What may be asked for."""
_KERNEL = (
    "use Linux 5.13 or newer with Landlock, as root or with user namespaces allowed "
    "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
)
_BUBBLEWRAP = f"install bubblewrap (Debian, Ubuntu: apt install bubblewrap), and {_KERNEL}"
FIXES = {LAYERED: _BUBBLEWRAP, BWRAP: _BUBBLEWRAP, KERNEL: _KERNEL}
"""What to do where a tier does not work."""

_BY_NAME = {tier.name: tier for tier in (*ISOLATING, NONE)}


def tier_named(name: str) -> Tier:
    """The tier of this name. Raises KeyError."""
    return _BY_NAME[name]


def isolates(name: str | None) -> bool:
    """Whether what was asked for, or what a result was made in, keeps students' programs from the machine.

    "auto" does: it refuses where nothing works.
    """
    return name != NONE.name


def worker_command(plan: Plan, worker: list[str], environment: dict[str, str]) -> list[str]:
    """What to start to have the worker's command run in its tier; in `environment`, which is passed to it as well."""
    return bwrap.command(plan, worker, environment) if plan.tier.in_bubblewrap else worker
