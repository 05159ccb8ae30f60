"""The other end of a rerun: a job that holds kernels' source alone, and plays tapes with them on inputs it is sent.

The source has been cleared by the supervisor: it holds kernels, the constants and functions that they use, and no call
that could leave them. What comes back is results and figures; what they are worth is judged elsewhere.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from grading.worker.launch_log import tensors_of
from grading.worker.wire.frames import Channel
from labkit import interpreter
from labkit.meters.compiled import CompileFailed
from labkit.meters.launch_log import Rerunner, UnusableLog
from labkit.spec import Tree

_MODULE = "rerun_kernels"


def serve_rerun(channel: Channel, parts: dict[str, Tree]) -> None:
    """Say "started", load the source, say "loaded" (or "failed"); answer "case" with "played" until another comes."""
    interpreter.enable()
    channel.send("started")
    try:
        module = _loaded(parts["source"])
    except Exception as error:
        channel.send("failed", {"failed": f"{type(error).__name__}: {error}"[:400]})
        return
    kernels = {(name, digest): getattr(module, attribute) for name, digest, attribute in parts["kernels"]}
    rerunner = Rerunner(kernels, tuple(parts["archs"]))
    channel.send("loaded")
    while True:
        kind, parts = channel.receive()
        if kind != "case":
            return
        channel.send("played", _played(rerunner, parts))


def _played(rerunner: Rerunner, parts: dict[str, Tree]) -> dict[str, Tree]:
    inputs = dict(tensors_of(parts["tree"]))
    try:
        played = rerunner.rerun(parts["tape"], inputs)
    except (UnusableLog, CompileFailed) as error:
        return {"failed": str(error)[:400], "by": type(error).__name__}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:400], "by": "error"}
    figures = {"measured": played.measured, "lost": list(played.lost)}
    return {"outputs": played.outputs, "inputs": played.inputs, **figures}


def _loaded(source: str) -> Callable:
    """The source as a module with a file, where Triton looks up the text of its kernels."""
    path = Path.cwd() / f"{_MODULE}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
