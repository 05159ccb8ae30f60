"""Run one job in this process, as an executor's processes do, on a forking process that is kept from job to job.

What comes back is plain data. Storing it, and trying again elsewhere, is for the one who asked.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import re
import socket
from pathlib import Path

import labkit
from grading.errors import UserError
from grading.isolation import Tier, select_tier
from grading.isolation.faults import InfrastructureFault
from grading.isolation.plan import COMPILER, CUDA, FULL, KERNELS, LIGHT, MODELS
from grading.isolation.sandbox import Sandbox
from grading.isolation.worker_tree import shared_worker_tree
from grading.supervisor.job import Job
from grading.supervisor.own_time import TookTooLong, process_limit, submission_limit
from grading.supervisor.result import SubmissionResult
from grading.worker.protocol.steps import Step, exercise_of

TRIES = 2
_COMPILES = re.compile(r"autograd|backward|checkpoint|compile|optim|['\"]meta['\"]")
"""PyTorch loads its compiler at the first optimizer, parts of it at `backward` with a gradient, on the meta device, and
where it is called.
It is there before memory is measured (`labkit.meters.memory.late`), and so before a fork measures any."""
_MEMORY = re.compile(r"\bmeters=\([^)]*\"(memory|saved)\"")
_GRAPHS = re.compile(r"track_compile")
_MODELS = re.compile(r"transformers|peft")
_KERNELS = re.compile(r"triton")
_CUDA = re.compile(r"__global__|compile_cuda")


def run(job: Job, tier: Tier, tree: Path | None = None) -> dict:
    """The job's result, as `SubmissionResult.to_json` gives it. A fault of ours is tried again once.

    tier: one that works on this machine. tree: the worker's files, where another process has made them already. Raises
    InfrastructureFault where there is no result, and TookTooLong where the supervisor itself would work on it for too
    long.
    """
    tree = tree or shared_worker_tree()
    for left in reversed(range(TRIES)):
        try:
            with submission_limit():
                return _graded(tier, tree, job).to_json()
        except TookTooLong:
            # It was stopped wherever it was, a job's process perhaps still running.
            close_sandboxes()
            raise
        except InfrastructureFault:
            # Whatever is wrong with it, a new one begins from nothing.
            close_sandboxes()
            if not left:
                raise
    raise AssertionError("the last try returns or raises")


def run_as_asked(job: Job, isolation: str) -> dict:
    """As `run`; isolation is a tier's name, or "auto" for the first that works on this machine.

    Raises InfrastructureFault also where this machine cannot isolate the job as asked.
    """
    try:
        tier = select_tier(isolation)
    except UserError as error:
        raise InfrastructureFault(f"{socket.gethostname()}: {error}") from error
    return run(job, tier)


def run_in_pool(job: Job, tier: Tier, tree: Path) -> dict:
    """As `run`, in a process that is there for jobs alone, and ends where nothing else would stop one."""
    with process_limit():
        return run(job, tier, tree)


def run_on_host(job: Job, isolation: str) -> dict:
    """As `run_as_asked`, in such a process on a host that has to choose the tier itself."""
    with process_limit():
        return run_as_asked(job, isolation)


def close_sandboxes() -> None:
    """End what this process keeps; the next job starts afresh."""
    while _kept():
        _kept().popitem()[1].close()


def _graded(tier: Tier, tree: Path, job: Job) -> SubmissionResult:
    if not tier.sandbox_per_submission:
        return _judged(_sandbox(tier, tree, preload_of(job)), job)
    with Sandbox(tier, tree, preload_of(job), is_awaited=False) as sandbox:
        return _judged(sandbox, job)


def _judged(sandbox: Sandbox, job: Job) -> SubmissionResult:
    # Judging needs torch: loaded where there is something to judge, and while the sandbox loads its own.
    from grading.supervisor.rounds import grade_job

    # What it takes to load is no student's time.
    sandbox.wait()
    return grade_job(sandbox, job)


def preload_of(job: Job) -> tuple[str, ...]:
    """What the forking process has loaded: what takes seconds, only for those whose text may come to it."""
    kernels = KERNELS if _installed("triton") and any(_KERNELS.search(text) for text in job.program) else ()
    cuda = CUDA if any(_CUDA.search(text) for text in job.program) else ()
    more = (*(COMPILER if any(_GRAPHS.search(text) for text in job.program) else ()), *kernels, *cuda)
    if _installed("transformers", "peft") and any(_MODELS.search(text) for text in job.program):
        return (*MODELS, *more)
    full = any(_COMPILES.search(text) for text in job.program) or any(map(_measures_memory, job.steps))
    return (*(FULL if full else LIGHT), *more)


def _measures_memory(step: Step) -> bool:
    """Whether a meter of memory is opened, which loads the compiler first. Read in the text, for which torch need not
    be loaded.
    """
    lab, _, slug = (exercise_of(step) or "").partition("-")
    path = Path(labkit.__file__).parent / "exercises" / f"lab{lab}" / f"{slug.replace('-', '_')}.py"
    return path.is_file() and _MEMORY.search(path.read_text(encoding="utf-8")) is not None


@functools.cache
def _installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


def _sandbox(tier: Tier, tree: Path, preload: tuple[str, ...]) -> Sandbox:
    if (tier, preload) not in _kept():
        _kept()[tier, preload] = Sandbox(tier, tree, preload, is_awaited=False)
    return _kept()[tier, preload]


@functools.cache
def _kept() -> dict[tuple[Tier, tuple[str, ...]], Sandbox]:
    """This process's own, by tier and by what they have loaded: they take seconds to load, so they are kept."""
    atexit.register(close_sandboxes)
    return {}
