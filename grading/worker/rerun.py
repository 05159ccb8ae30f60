"""The other end of a rerun: a job that holds kernels' source alone, and repeats launches with them on new inputs.

The source has been cleared by the supervisor: it holds kernels, the constants and functions that they use, and no call
that could leave them. What comes back is results and figures; what they are worth is judged elsewhere.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from grading.worker.launch_log import tensors_of
from grading.worker.protocol.rerun import Failed, Loaded, Repeated, RerunCase, RerunKernels, Started
from grading.worker.protocol.trees import MAX_ERROR
from grading.worker.wire.frames import Channel
from labkit import interpreter
from labkit.meters.compiled import CompileFailed
from labkit.meters.launch_log import Rerunner, UnusableLog

_MODULE = "rerun_kernels"


def serve_rerun(channel: Channel, job: RerunKernels) -> None:
    """Load the source and repeat the launches of one case after the other, until the supervisor ends the job."""
    interpreter.enable()
    channel.post(Started())
    try:
        module = _loaded(job.source)
    except Exception as error:
        channel.post(_failed(error))
        return
    kernels = {(name, digest): getattr(module, attribute) for name, digest, attribute in job.kernels}
    rerunner = Rerunner(kernels, job.archs)
    channel.post(Loaded())
    while True:
        channel.post(_rerun(rerunner, channel.expect(RerunCase)))


def _rerun(rerunner: Rerunner, case: RerunCase) -> Repeated | Failed:
    inputs = dict(tensors_of(case.tree))
    try:
        if case.full_size:
            return Repeated({}, {}, rerunner.compiled(case.launch_log), ())
        repeated = rerunner.rerun(case.launch_log, inputs)
    except (UnusableLog, CompileFailed) as error:
        return Failed(str(error)[:MAX_ERROR], type(error).__name__)
    except Exception as error:
        return _failed(error)
    return Repeated(repeated.outputs, repeated.inputs, repeated.measured, tuple(repeated.lost))


def _failed(error: Exception) -> Failed:
    return Failed(f"{type(error).__name__}: {error}"[:MAX_ERROR], "error")


def _loaded(source: str) -> Callable:
    """The source as a module with a file, where Triton looks up the text of its kernels."""
    path = Path.cwd() / f"{_MODULE}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
