"""Record an answer's kernel launches while its driver runs, for exercises whose budgets a rerun is to judge.

The driver itself does not know: it is handed a stage whose meters of kernels write a launch log as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace

import torch

from labkit.meters.launch_log import LaunchLog
from labkit.meters.launches import KernelLaunch
from labkit.observe import observe_full_size
from labkit.spec import Exercise, Observation, Tree
from labkit.stage import Stage

RECORDED = frozenset({"traffic", "compiled"})
"""The meters whose blocks are recorded."""


@dataclass
class RecordingStage(Stage):
    """A stage that records what its blocks launch. What the compiler makes of a kernel is found out elsewhere."""

    log: LaunchLog | None = None

    def meter(self, name: str) -> AbstractContextManager[None]:
        if name == "compiled":
            return self.log.recording()
        return self._with_log(name) if name in RECORDED else super().meter(name)

    @contextmanager
    def _with_log(self, name: str) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(super().meter(name))
            stack.enter_context(self.log.recording())
            yield


class LaunchRecorder:
    """The exercise with a driver that is recorded, and what was recorded of its last run: None before it has ended."""

    def __init__(self, exercise: Exercise) -> None:
        self._drive = exercise.drive
        self.exercise = replace(exercise, drive=self._recorded)
        self.log: Tree = None

    def _recorded(self, answers: object, case: object, tree: Tree, stage: Stage) -> Tree:
        log = LaunchLog(dict(tensors_of(tree)))
        recording = RecordingStage(**{item.name: getattr(stage, item.name) for item in fields(Stage)}, log=log)
        value = self._drive(answers, case, tree, recording)
        self.log = log.as_tree(dict(tensors_of(value)))
        return value


def recorder_of(exercise: Exercise, bounds_memory: bool) -> LaunchRecorder | None:
    """None for an exercise of no kernels, and for a run whose memory is bounded, which a log could disturb."""
    is_recorded = RECORDED & set(exercise.meters) and exercise.run.ranks == 1 and not bounds_memory
    return LaunchRecorder(exercise) if is_recorded else None


def observe_written(exercise: Exercise, answers: SimpleNamespace) -> tuple[Observation, Tree]:
    """What the answer would launch at full size: nothing is run, measured or returned; and the log of it."""
    log = LaunchLog({})

    def write(launches: Sequence[KernelLaunch]) -> dict[str, float]:
        for one in launches:
            log.write_launch(one)
        return {}

    return observe_full_size(exercise, answers, write), log.as_tree({})


def tensors_of(tree: Tree, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """The strided tensors of what a driver was handed or returned, named as `labkit.tree.leaves` names them."""
    if isinstance(tree, torch.Tensor):
        if tree.layout is torch.strided and not tree.is_nested:
            yield path, tree
        return
    items: Sequence[tuple[object, object]] = ()
    if isinstance(tree, dict):
        items = list(tree.items())
    elif isinstance(tree, list | tuple):
        items = list(enumerate(tree))
    for key, item in items:
        yield from tensors_of(item, f"{path}.{key}" if path else str(key))
