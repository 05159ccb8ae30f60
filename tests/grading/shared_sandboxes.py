"""Sandboxes that the tests of a process share, from module to module: each takes seconds of CPU time to start.

A sandbox runs one job at a time, in a folder that is new for each, so tests leave nothing to one another. One that a
test has broken is replaced before the next module has it. Tests that are of a sandbox's own beginning, limits or end
start one themselves.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Sequence

from grading.isolation import Tier
from grading.isolation.faults import InfrastructureFault
from grading.isolation.plan import FULL
from grading.supervisor import Sandbox
from grading.worker.confine.plan import PLAIN, Limits, MiB
from tests.grading.fake_labs import tree_with_fake_labs

SMALL = Limits(memory_bytes=768 * MiB)


def shared_sandbox(tier: Tier, preload: Sequence[str] = FULL, limits: Limits = PLAIN) -> Sandbox:
    """The one of this tier that has these modules loaded and knows labs 94 to 99. Nobody but this module closes it."""
    kept, key = _kept(), (tier, tuple(preload), limits)
    if key in kept and not _answers(kept[key]):
        kept.pop(key).close()
    if key not in kept:
        kept[key] = Sandbox(tier, tree_with_fake_labs(), preload=key[1], limits=limits)
    return kept[key]


def small_sandbox(tier: Tier) -> Sandbox:
    """One whose jobs reach the cap on memory soon."""
    return shared_sandbox(tier, ("torch", "grading.worker.job"), SMALL)


def _answers(sandbox: Sandbox) -> bool:
    try:
        sandbox.open_job().close()
        sandbox.kill_job()
    except InfrastructureFault:
        return False
    return True


@functools.cache
def _kept() -> dict[tuple[Tier, tuple[str, ...], Limits], Sandbox]:
    atexit.register(_close_all)
    return {}


def _close_all() -> None:
    while _kept():
        _kept().popitem()[1].close()
