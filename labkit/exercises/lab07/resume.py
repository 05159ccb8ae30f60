"""Lab 07: streams through shuffle buffers that go on where a job was killed, also in another number."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.generators import global_generators
from labkit.exercises.lab07.tar_shards import Watched
from labkit.spec import Answer, Case, Exercise, Run
from labkit.store import Kill

STATE = "state.json"
SHARD = "lines-{:03d}.txt"


@dataclass(frozen=True)
class Lines(Case):
    """n_shards files of per_shard lines each, read through buffers of buffer_size. n_streams: of each job, which take
    turns as the workers of a loader do. All jobs but the last are killed; where, none is told.
    """

    n_shards: int
    per_shard: int
    buffer_size: int
    n_streams: tuple[int, ...] = (1, 1)
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
    most = case.n // len(case.n_streams)
    kills = [Kill(int(torch.randint(2, most, (), generator=gen)), "write").to_tree() for _ in case.n_streams[1:]]
    return {"files": files, "kills": kills}


def in_turns(streams: Sequence[Any], turn: int, most: int) -> Iterator[tuple[str, int]]:
    """A line of each stream in turn, beginning with that of number `turn`, and whose turn it is next; `most` lines."""
    open_ones, n = {number: iter(stream) for number, stream in enumerate(streams)}, 0
    while open_ones and n < most:
        if turn in open_ones:
            try:
                line = str(next(open_ones[turn]))
            except StopIteration:
                del open_ones[turn]
            else:
                n += 1
                yield line, (turn + 1) % len(streams)
        turn = (turn + 1) % len(streams)


def drive(ans, case: Lines, tree: dict, stage) -> dict[str, Any]:
    """seen: all lines that the jobs have trained on, without steps that were not saved. n_resumed: how many of them the
    last job began with. n_states: how many states `deal_again` returned, None where it was not asked. read: the shards
    that this job read, in order. whole, again: streams as in the first job that nobody interrupts, and whole_read: the
    shards that those of `whole` read. changed: whose global generators go on from another state after that; names_left:
    whether its streams left the list of names as it was.
    """
    store = Watched(stage.store)
    names = [SHARD.format(shard) for shard in range(case.n_shards)]
    given: list[list[str]] = []

    def streams(n: int) -> list:
        found = []
        for number in range(n):
            given.append(list(names))
            found.append(ans.ResumableStream(store, given[-1], case.buffer_size, case.seed, number=number, n_streams=n))
        return found

    job, seen, turn, states, n_states = 0, [], 0, None, None
    if STATE in stage.store.list(STATE):
        saved = json.loads(stage.store.read(STATE))
        job, seen, turn, states = saved["job"] + 1, saved["seen"], saved["turn"], saved["states"]
    mine, n_resumed = streams(case.n_streams[job]), len(seen)
    if states is not None and len(states) != len(mine):
        states, turn = list(ans.deal_again(states, len(mine))), 0
        n_states = len(states)
    for stream, state in zip(mine, states or (), strict=False):
        stream.load_state_dict(state)
    for line, next_turn in in_turns(mine, turn, 2 * case.n):
        seen.append(line)
        text = json.dumps({"job": job, "seen": seen, "turn": next_turn, "states": [one.state_dict() for one in mine]})
        stage.store.write(STATE + ".new", text.encode())
        stage.store.rename(STATE + ".new", STATE)
    read = list(store.names)
    store.names.clear()

    def whole() -> list[str]:
        return [line for line, _ in in_turns(streams(case.n_streams[0]), 0, 2 * case.n)]

    with global_generators(7) as changed:
        first = whole()
    whole_read = list(store.names)
    return {
        "seen": seen,
        "n_resumed": n_resumed,
        "n_states": n_states,
        "read": read,
        "whole": first,
        "whole_read": whole_read,
        "again": whole(),
        "changed": changed,
        "names_left": all(one == names for one in given),
    }


RESUME = Exercise(
    id="07-resume",
    title="Go on in the middle of an epoch",
    points=0.4,
    minutes=35,
    difficulty=3,
    answers=(Answer("ResumableStream"), Answer("deal_again")),
    public=(
        Lines(6, 10, 8),
        Lines(5, 12, 15, (1, 1, 1), seed=3),
        Lines(8, 6, 1, seed=1),
        Lines(4, 9, 100, seed=5),
        Lines(9, 7, 4, (3, 3), seed=2),
        Lines(10, 6, 5, (4, 2)),
        Lines(8, 7, 4, (2, 5), seed=4),
    ),
    inputs=lines_and_kills,
    drive=drive,
    run=Run(store=True),
    optional=True,
)
