"""Run an answer's kernels again, in a job that holds nothing but their text, on inputs that the answer never saw.

The launches are those that the student's process says it made; everything else is ours: the source, the inputs, the
meters. So results that were computed anywhere else, and figures that were invented, do not come out again. What did
come out is judged elsewhere, like any run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed

import torch

from grading.isolation.faults import InfrastructureFault
from grading.isolation.sandbox import Sandbox
from grading.supervisor.kernels.extract import Extracted, Key, extract
from grading.supervisor.kernels.names import names_of
from grading.supervisor.kernels.sanitize import NotRerunnable
from grading.supervisor.kernels.shown import hint_on_text
from grading.supervisor.session import GRACE_S, START_S
from grading.worker.protocol.rerun import Failed, Loaded, Repeated, RerunCase, RerunKernels, Started
from grading.worker.protocol.trees import clean
from grading.worker.wire.frames import Channel
from grading.worker.wire.typed import WireError
from labkit.check.judge import is_full_size
from labkit.check.on_error import LARGE_BLOCK_HINT
from labkit.meters.compiled import ARCHS, LARGE_BLOCK
from labkit.observe import make_inputs
from labkit.spec import Exercise, Observation, Outcome, Tree, Trouble
from labkit.tree import leaves

COMPILE_S = 5.0
"""Wall time for compiling one kernel for one GPU, several times what a slow machine takes."""
LOAD_S = 10.0
"""Wall time for loading the kernels' text, which only defines functions and constants."""
_MAX_KERNELS = 64


@dataclass(frozen=True)
class Rerun:
    """runs: the cases again, as observed in the rerun; fewer, where it ended early.

    outcome, problem, hint: why it ended early, for the instructor and for the student. lost: operations of PyTorch's
    that took part in what the answer did and that are not repeated, as the student's process names them. cpu_s: what
    it took.
    """

    runs: tuple[Observation, ...] = ()
    outcome: Outcome | None = None
    problem: str = ""
    hint: str | None = None
    lost: tuple[str, ...] = ()
    cpu_s: float = 0.0


def rerun(
    sandbox: Sandbox,
    exercise: Exercise,
    runs: Sequence[Observation],
    logs: Sequence[Tree],
    public_logs: Sequence[Tree],
    cells: Sequence[str],
    seed_of: Callable[[int], int],
    compiled: bool = False,
) -> Rerun:
    """Rerun every run that has a launch log. Raises InfrastructureFault where the trouble is ours.

    public_logs: those of the public cases, by which alone a hint may go. cells: the notebook's code up to the exercise.
    seed_of: of the fresh inputs of the n-th run. compiled: whether the figures of the compiler are wanted as well.
    """
    try:
        if len(logs) != len(runs):
            raise ValueError(f"{len(logs)} records of {len(runs)} runs")
        keys = _kernels_of(logs)
        missing = [path for run, log in zip(runs, logs) for path in _tensors(run.got) if path not in log["outputs"]]
        n_left_out = sum(int(log["left_out"]) for log in logs)
    except Exception as error:
        # Whatever a worker may send in place of a launch log.
        return Rerun(outcome="suspected", problem=f"its record of launches cannot be read ({type(error).__name__})")
    if missing:
        return Rerun(outcome="suspected", problem=f"its record of launches names no origin of {clean(missing[0], 40)}")
    if n_left_out:
        hint = "It launches far more kernels than it needs: let one launch do the work of many programs."
        return Rerun(outcome="limit", problem=f"{n_left_out:,} launches beyond what is recorded", hint=hint)
    names = names_of(cells)
    try:
        extracted = extract(names, keys)
    except NotRerunnable as error:
        hint = hint_on_text(lambda public: extract(names, _kernels_of(public)), public_logs)
        return Rerun(outcome="failed", problem=error.problem, hint=hint)
    fresh = [
        {} if is_full_size(exercise, run) else _fresh(run.tree, make_inputs(exercise, run.case, seed_of(n)))
        for n, run in enumerate(runs)
    ]
    channel = sandbox.open_job(("compiler",) if compiled else ())
    try:
        found = _repeated(channel, exercise, extracted, runs, logs, fresh, ARCHS if compiled else ())
    finally:
        channel.close()
        ended = sandbox.kill_job()
    return changed(found, cpu_s=ended.cpu_s)


def _repeated(
    channel: Channel,
    exercise: Exercise,
    extracted: Extracted,
    runs: Sequence[Observation],
    logs: Sequence[Tree],
    fresh: Sequence[Tree],
    archs: Sequence[int],
) -> Rerun:
    kernels = tuple((*key, called) for key, called in extracted.kernels.items())
    started_by = time.monotonic() + START_S
    done: list[Observation] = []
    lost: dict[str, None] = {}
    try:
        channel.post(RerunKernels(extracted.source, kernels, tuple(archs)), started_by)
        channel.expect(Started, started_by)
    except (TimeoutError, WireError) as error:
        raise InfrastructureFault("the rerun did not start") from error
    try:
        loaded = channel.expect((Loaded, Failed), time.monotonic() + LOAD_S)
    except (TimeoutError, WireError):
        hint = "Look for a constant of the kernels that takes long to compute, or much memory: write its value."
        return Rerun(outcome="limit", problem="its kernels' text could not be loaded in time or memory", hint=hint)
    if isinstance(loaded, Failed):
        return Rerun(outcome="suspected", problem=f"its kernels could not be loaded: {loaded.problem}")
    limit_s = exercise.run.wall_s + GRACE_S + COMPILE_S * len(kernels) * len(archs) * len(runs)
    deadline = time.monotonic() + limit_s
    try:
        for run, log, tree in zip(runs, logs, fresh):
            at_full_size = is_full_size(exercise, run)
            channel.post(RerunCase(log, tree, at_full_size), deadline)
            repeated = channel.expect((Repeated, Failed), deadline)
            if isinstance(repeated, Failed) and at_full_size and repeated.by == "CompileFailed":
                done.append(Observation(run.case, tree, trouble=Trouble("raised", repeated.problem)))
                continue
            if isinstance(repeated, Failed):
                return _failed(repeated, done, lost)
            lost.update(dict.fromkeys(repeated.lost))
            measured = {**run.measured, **repeated.measured}
            got, back = _with_leaves(run.got, repeated.outputs), _with_leaves(tree, repeated.inputs)
            done.append(Observation(run.case, tree, got, back, measured, held=run.held))
    except TimeoutError:
        problem = f"its kernels did not finish within {limit_s:g} s when they were run again"
        return Rerun(tuple(done), "limit", problem, "Look for a loop in a kernel that hardly ends.", tuple(lost))
    except WireError as error:
        problem = f"the process that ran its kernels again ended ({clean(str(error), 100)})"
        return Rerun(tuple(done), "limit", problem, "Look for a kernel that needs far too much memory.", tuple(lost))
    return Rerun(tuple(done), lost=tuple(lost))


def _failed(failed: Failed, done: Sequence[Observation], lost: Mapping[str, None]) -> Rerun:
    problem = failed.problem
    if failed.by == "CompileFailed":
        hint = "The kernel runs in the interpreter, but does not compile for a GPU: see `compile_report(kernel, ...)`."
        if LARGE_BLOCK in problem:
            hint = LARGE_BLOCK_HINT
        return Rerun(tuple(done), "failed", problem, hint, tuple(lost))
    return Rerun(tuple(done), "suspected", f"its kernels could not be run again: {problem}", None, tuple(lost))


def _kernels_of(logs: Sequence[Tree]) -> list[Key]:
    """The kernels that these logs launch or hand over, by name and digest. Raises on what is no launch log."""
    found: dict[Key, None] = {}

    def add(key: Tree) -> None:
        name, digest = key
        found[clean(name, 100), clean(digest, 32)] = None

    def look(argument: Tree) -> None:
        ((kind, value),) = argument.items()
        if kind == "kernel":
            add(value)
        elif kind == "tuple":
            for item in value:
                look(item)

    for log in logs:
        for entry in log["entries"]:
            if entry["do"] == "launch":
                add(entry["kernel"])
                for argument in entry["arguments"].values():
                    look(argument)
    if len(found) > _MAX_KERNELS:
        raise ValueError("too many kernels")
    return list(found)


def _fresh(tree: Tree, drawn: Tree) -> Tree:
    """The run's own inputs with the tensors drawn anew, where these have the same form; its numbers stay."""
    new = dict(_tensors(drawn))
    old = _tensors(tree)
    same = {path: new[path] for path in old if path in new and _form(new[path]) == _form(old[path])}
    return _with_leaves(tree, same)


def _form(tensor: torch.Tensor) -> tuple:
    return (tensor.dtype, tensor.shape)


def _tensors(tree: Tree) -> dict[str, torch.Tensor]:
    return {path: leaf for path, leaf in leaves(tree) if isinstance(leaf, torch.Tensor)}


def _with_leaves(tree: Tree, new: Mapping[str, torch.Tensor], path: str = "") -> Tree:
    """The tree with some of its tensors exchanged, by path."""
    if isinstance(tree, dict):
        return {key: _with_leaves(item, new, f"{path}.{key}" if path else str(key)) for key, item in tree.items()}
    if isinstance(tree, list):
        return [_with_leaves(item, new, f"{path}.{n}" if path else str(n)) for n, item in enumerate(tree)]
    return new.get(path, tree) if isinstance(tree, torch.Tensor) else tree
