"""One cell run in a job of a sandbox, and what it printed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from grading.isolation.sandbox import Sandbox
from grading.worker.protocol.steps import RunCode, step_to_tree
from grading.worker.wire.frames import Channel

WITHIN_S = 120.0
"""What is waited for comes in milliseconds; on a busy machine, where a hundred processes begin, in half a minute."""


Do = Callable[..., object]


def doing(server: Sandbox) -> Do:
    """Runs a cell in a job of its own and gives what it printed as JSON, or the error that ended it."""

    def run(source: str, grants: tuple[str, ...] = ()) -> object:
        said = run_cell(server, source, grants)
        server.kill_job()
        return said

    return run


def run_cell(server: Sandbox, source: str, grants: tuple[str, ...] = ()) -> object:
    with cell(server, source, grants) as channel:
        said = {}
        while "printed" not in said:
            _, said = channel.receive(time.monotonic() + WITHIN_S)
    return said["error"] or (json.loads(said["printed"]) if said["printed"] else None)


@contextmanager
def cell(server: Sandbox, source: str, grants: tuple[str, ...] = ()) -> Iterator[Channel]:
    """A job that runs this cell now; its channel."""
    with closing(server.open_job(grants)) as channel:
        channel.send("job", {"steps": [step_to_tree(RunCode("a", source))], "fork": True})
        assert channel.receive(time.monotonic() + WITHIN_S)[0] == "begins"
        channel.send("go")
        assert channel.receive(time.monotonic() + WITHIN_S)[0] == "at"
        yield channel
