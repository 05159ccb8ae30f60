"""A stream of jobs whose jobs are functions of a test, run in threads; what it was given and what it told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import grading.pipeline.stream as streams
from grading.isolation.tiers import NONE
from grading.pipeline.stream import JobStream

WORKERS = 2


def work(number: int) -> SimpleNamespace:
    return SimpleNamespace(job=number)


class Recorder:
    """What a stream was given and what it told."""

    def __init__(self, monkeypatch, run: Callable[[int], object], workers: int = WORKERS) -> None:
        self.told: dict[int, object] = {}
        self.n_opened = 0
        self.most_ahead = 0
        self.stop = False
        monkeypatch.setattr(streams, "run_in_pool", lambda job, _tier, _tree: run(job))
        monkeypatch.setattr(streams, "open_executor", self.open)
        monkeypatch.setattr(streams, "TICK_S", 0.01)
        self.stream = JobStream(workers, None, NONE.name, NONE, self.tell, lambda: None, lambda: self.stop)

    @contextmanager
    def open(self, workers: int, _cluster: str | None, _isolation: str) -> Iterator[Executor]:
        self.n_opened += 1
        with ThreadPoolExecutor(workers) as executor:
            yield executor

    def tell(self, item: SimpleNamespace, outcome: object) -> None:
        assert item.job not in self.told
        self.told[item.job] = outcome

    def feed(self, n: int) -> Iterator[SimpleNamespace]:
        for number in range(n):
            self.most_ahead = max(self.most_ahead, number - len(self.told))
            yield work(number)
