"""One submission: run its cells in order, and fork at every check, so that exercises cannot spoil one another.

A check sees the notebook as a student's "run all" would have left it at that point. The supervisor is sent
everything as it happens; no score is made here.
"""

from __future__ import annotations

import os
import signal
import site
import socket
import sys
import tempfile

from grading.worker.cells import Shell
from grading.worker.event_loop import do_without_sockets
from grading.worker.exercise import serve_exercise
from grading.worker.protocol.job import At, Begins, ExerciseOver, Go, JobOver, StartJob, ThreadsAreRunning
from grading.worker.protocol.rerun import RerunKernels
from grading.worker.protocol.steps import RunTest, ServeExercise
from grading.worker.rerun import serve_rerun
from grading.worker.wire.frames import Channel


def run_job(channel_fd: int, folder: str) -> None:
    """Take a job from the channel, run it in `folder`, and send how each step went."""
    _quiet()
    os.environ.update(HOME=folder, TMPDIR=folder, MPLCONFIGDIR=folder)
    # A module that a cell writes can be imported, and stands in for no other.
    sys.path.append(folder)
    # Programs that a cell starts find what it has itself.
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    os.environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    # Without the site module there would be no help() and no exit().
    for add in (site.sethelper, site.setquit, site.setcopyright):
        add()
    do_without_sockets()
    # Found out by writing a file otherwise, which a sealed job may not.
    tempfile.tempdir = folder
    channel = Channel(socket.socket(fileno=channel_fd), takes_memory=True)
    job = channel.expect((StartJob, RerunKernels))
    if isinstance(job, RerunKernels):
        serve_rerun(channel, job)
        return
    shell = Shell()
    shell.settle()
    # From here on the student's code may do to this process what it likes: ours has looked at it before.
    channel.post(Begins())
    channel.expect(Go)
    for step in job.steps:
        channel.post(At(step.cell_id))
        if isinstance(step, ServeExercise):
            if not _run_exercise(channel, shell, step, in_fork=job.fork):
                return
        else:
            channel.post(shell.run(step.source, value_wanted=isinstance(step, RunTest)))
    channel.post(JobOver())


def _run_exercise(channel: Channel, shell: Shell, step: ServeExercise, in_fork: bool) -> bool:
    """Whether the exercise could be served."""
    if not in_fork:
        serve_exercise(channel, shell.namespace, step)
        return True
    if len(os.listdir("/proc/self/task")) > 1:
        # A fork of a process with threads may hang: the supervisor runs the cells again for this exercise alone.
        channel.post(ThreadsAreRunning())
        return False
    pid = os.fork()
    if pid == 0:
        try:
            serve_exercise(channel, shell.namespace, step)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    channel.post(ExerciseOver(how))
    return True


def _quiet() -> None:
    """Point the standard streams at nothing; what cells print is captured above this level."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    sys.stdin = open(os.devnull)  # noqa: SIM115
