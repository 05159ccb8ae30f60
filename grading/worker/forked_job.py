"""A job's process, from its first moment in a fork of the forking process to the first line of the job itself.

It keeps the job's channel and closes every other descriptor, goes to its folder, sets its limits and gives up its
rights. Which namespaces it is in, and when it ends, is decided in the forking process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from collections.abc import Callable, Sequence

from grading.worker.confine.plan import Plan, with_grants
from grading.worker.confine.surrender import set_limits, surrender
from grading.worker.protocol.control import JobPlace

_MANY = 65536


def job_process(
    channel_fd: int, place: JobPlace, trial: dict | None, plan: Plan, grants: tuple[str, ...]
) -> Callable[[], None]:
    """What a job's process does from its first moment on."""
    limits = with_grants(plan.limits, grants)

    def job() -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            os.closerange(3, channel_fd)
            os.closerange(channel_fd + 1, _MANY)
            # The last session that it can begin: all that it starts shares the processors in it.
            os.setsid()
            _settle_into(place)
            set_limits(limits)
            if plan.tier.isolates:
                surrender(place.uid, limits, grants)
        except OSError:
            # What was not given up must not be used: there is no job then.
            traceback.print_exc()
            os._exit(1)
        if trial is not None:
            from grading.worker.trial import run_trial

            run_trial(channel_fd, trial)
        else:
            from grading.worker.job import run_job

            run_job(channel_fd, place.folder)

    return job


def fork_plainly(jobs: Sequence[Callable[[], None]], descriptors: Sequence[int]) -> int:
    """Fork a job, or several below a process that waits for them; the process id of the first of them."""
    pid = os.fork()
    if pid:
        return pid
    try:
        if len(jobs) == 1:
            jobs[0]()
        else:
            for job in jobs:
                fork_plainly([job], ())
            for descriptor in descriptors:
                os.close(descriptor)
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.wait()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _settle_into(place: JobPlace) -> None:
    """Make the job's folder where it is not there yet, its user's own, and go there."""
    os.makedirs(place.folder, exist_ok=True)
    if place.uid is not None:
        os.chown(place.folder, place.uid, place.uid)
    os.chdir(place.folder)
