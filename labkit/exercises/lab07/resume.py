"""Lab 07: a stream through a shuffle buffer that goes on where a job was killed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from labkit.exercises.lab07.tar_shards import Watched
from labkit.spec import Answer, Case, Exercise, Run
from labkit.store import Kill

STATE = "state.json"
SHARD = "lines-{:03d}.txt"


@dataclass(frozen=True)
class Lines(Case):
    """n_shards files of per_shard lines each, read through a buffer of buffer_size. n_kills jobs are killed before the
    last one; where, no job is told.
    """

    n_shards: int
    per_shard: int
    buffer_size: int
    n_kills: int = 1
    seed: int = 0

    @property
    def n(self) -> int:
        return self.n_shards * self.per_shard


def lines_and_kills(case: Lines, gen: torch.Generator) -> dict[str, Any]:
    """A line names its shard and its place in it: "3/7". Each job is killed as it saves its state for the k-th time, so
    that k - 1 steps of it are saved.
    """
    files = {
        SHARD.format(shard): torch.frombuffer(
            bytearray("".join(f"{shard}/{line}\n" for line in range(case.per_shard)).encode()), dtype=torch.uint8
        )
        for shard in range(case.n_shards)
    }
    most = case.n // (case.n_kills + 1)
    kills = [Kill(int(torch.randint(2, most, (), generator=gen)), "write").to_tree() for _ in range(case.n_kills)]
    return {"files": files, "kills": kills}


def drive(ans, case: Lines, tree: dict, stage) -> dict[str, Any]:
    """seen: all lines that the jobs have trained on, without steps that were not saved. n_resumed: how many of them the
    last job began with. read: the shards that it read, in order. whole, again: two streams that nobody interrupts.
    """
    store = Watched(stage.store)
    names = [SHARD.format(shard) for shard in range(case.n_shards)]
    stream = ans.ResumableStream(store, list(names), case.buffer_size, case.seed)
    seen: list[str] = []
    if STATE in stage.store.list(STATE):
        saved = json.loads(stage.store.read(STATE))
        seen = saved["seen"]
        stream.load_state_dict(saved["stream"])
    n_resumed = len(seen)
    for line in stream:
        seen.append(str(line))
        text = json.dumps({"seen": seen, "stream": stream.state_dict()})
        stage.store.write(STATE + ".new", text.encode())
        stage.store.rename(STATE + ".new", STATE)
        if len(seen) > 2 * case.n:
            break
    read = list(store.names)

    def whole() -> list[str]:
        stream = ans.ResumableStream(store, list(names), case.buffer_size, case.seed)
        return [str(line) for line in islice(stream, 2 * case.n)]

    return {
        "seen": seen,
        "n_resumed": n_resumed,
        "read": read,
        "whole": whole(),
        "again": whole(),
    }


RESUME = Exercise(
    id="07-resume",
    title="Go on in the middle of an epoch",
    points=0.4,
    minutes=25,
    difficulty=3,
    answers=(Answer("ResumableStream"),),
    public=(
        Lines(6, 10, 8),
        Lines(5, 12, 15, n_kills=2, seed=3),
        Lines(8, 6, 1, seed=1),
    ),
    inputs=lines_and_kills,
    drive=drive,
    run=Run(store=True),
    optional=True,
)
