"""Lab 10: what small programs of several threads do, written down thread by thread.

A trace is a list of launches, a launch a list of blocks, a block a list of threads, a thread a list of what it does:

    [[[[Op("write", "shared", 0), Op("barrier")], [Op("barrier"), Op("read", "shared", 0)]]]]

It says what each thread does in which order, and nothing of the order between threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

Trace = list[list[list[list["Op"]]]]


class Op(NamedTuple):
    """kind: "read", "write", "atomic" or "barrier", which has no space and no place.

    space: "shared" or "global"; place: which word of it.
    """

    kind: str
    space: str = ""
    place: int = -1


BARRIER = Op("barrier")


class Access(NamedTuple):
    """One access of a trace: by which thread, and after how many barriers of this thread.

    Access(launch=0, block=1, thread=0, epoch=2, kind="read", space="shared", place=3)
    """

    launch: int
    block: int
    thread: int
    epoch: int
    kind: str
    space: str
    place: int


def accesses(trace: Trace) -> list[Access]:
    """All reads, writes and atomic updates of a trace."""
    found = []
    for number, launch in enumerate(trace):
        for b, block in enumerate(launch):
            for t, thread in enumerate(block):
                epoch = 0
                for op in thread:
                    if op == BARRIER:
                        epoch += 1
                    else:
                        found.append(Access(number, b, t, epoch, *op))
    return found


def read(place: int, space: str = "shared") -> Op:
    return Op("read", space, place)


def write(place: int, space: str = "shared") -> Op:
    return Op("write", space, place)


def atomic(place: int, space: str = "shared") -> Op:
    return Op("atomic", space, place)


def _launch(n_blocks: int, n_threads: int, thread: Callable[[int, int], list[Op]]) -> list[list[list[Op]]]:
    return [[thread(block, t) for t in range(n_threads)] for block in range(n_blocks)]


Program = Callable[[int, int], Trace]
"""(blocks, threads in each, two or more of both) -> trace."""


def with_barrier(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [write(t), BARRIER, read((t + 1) % n)])]


def without_barrier(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [write(t), read((t + 1) % n)])]


def in_a_branch(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [write(t)] + [BARRIER] * (t < n // 2) + [read(t)])]


def in_two_branches(b: int, n: int) -> Trace:
    """One thread of the last block leaves early."""
    return [
        _launch(
            b, n, lambda block, t: [write(t), BARRIER] + [read((t + 1) % n), BARRIER] * ((block, t) != (b - 1, n - 1))
        )
    ]


def from_the_next_block(b: int, n: int) -> Trace:
    """Each block writes its result, then all threads pass a barrier, then a block reads the next one's."""
    return [
        _launch(
            b,
            n,
            lambda block, t: (
                [write(block, "global")] * (t == 0) + [BARRIER] + [read((block + 1) % b, "global")] * (t == 1)
            ),
        )
    ]


def in_two_launches(b: int, n: int) -> Trace:
    first = _launch(b, n, lambda block, t: [write(block, "global")] * (t == 0))
    return [first, _launch(b, n, lambda block, t: [read((block + 1) % b, "global")] * (t == 1))]


def atomic_total(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [atomic(0), BARRIER] + [atomic(0, "global")] * (t == 0))]


def atomic_total_read_at_once(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [atomic(0)] + [read(0)] * (t == n - 1))]


def plain_total(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [read(0, "global"), write(0, "global")] * (t == 0))]


def places_of_their_own(b: int, n: int) -> Trace:
    """Every thread for itself, in words that have the same numbers in other blocks."""
    return [_launch(b, n, lambda block, t: [write(t), read(t), write(t), read(t), BARRIER])]


def same_numbers_in_both_spaces(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [write(t), write(n * block + (t + 1) % n, "global"), BARRIER])]


def all_read_one(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [read(0, "global"), read(7, "global"), read(0, "global")])]


def all_write_one(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [BARRIER, write(5)] if block == 0 else [BARRIER, read(5)])]


def tile_used_again(b: int, n: int) -> Trace:
    """A loop that fills a tile, waits and reads it, and fills it again at once."""
    return [_launch(b, n, lambda block, t: [write(t), BARRIER, read((t + 1) % n)] * 2)]


def tile_used_again_with_two_barriers(b: int, n: int) -> Trace:
    return [_launch(b, n, lambda block, t: [write(t), BARRIER, read((t + 1) % n), BARRIER] * 2)]


def blocks_with_loops_of_their_own(b: int, n: int) -> Trace:
    """Each block as many barriers as its number says."""
    return [_launch(b, n, lambda block, t: [write(t), BARRIER, read(n - 1 - t), BARRIER] * (block + 1))]


def through_global_memory(b: int, n: int) -> Trace:
    """Threads of one block exchange by global memory, with a barrier."""
    return [_launch(b, n, lambda block, t: [write(n * block + t, "global"), BARRIER, read(n * block, "global")])]


def reads_while_the_next_is_written(b: int, n: int) -> Trace:
    """A race, and in the last block a thread that the others wait for."""
    return [_launch(b, n, lambda block, t: [write(0)] * (t == 0) + [read(0)] + [BARRIER] * (block < b - 1 or t > 0))]


PROGRAMS: Mapping[str, Program] = {
    one.__name__: one
    for one in (
        with_barrier,
        without_barrier,
        in_a_branch,
        in_two_branches,
        from_the_next_block,
        in_two_launches,
        atomic_total,
        atomic_total_read_at_once,
        plain_total,
        places_of_their_own,
        same_numbers_in_both_spaces,
        all_read_one,
        all_write_one,
        tile_used_again,
        tile_used_again_with_two_barriers,
        blocks_with_loops_of_their_own,
        through_global_memory,
        reads_while_the_next_is_written,
    )
}


def random_trace(n_blocks: int, n_threads: int, seed: int) -> Trace:
    """A few accesses a thread between barriers that all of them reach; now and then a barrier is missing.

    The same arguments give the same trace, so a trace can be named by them.
    """
    gen = torch.Generator().manual_seed(seed)

    def draw(n: int) -> int:
        return int(torch.randint(n, (), generator=gen))

    n_words, n_steps = 6 * n_blocks * n_threads, 1 + draw(3)
    kinds = ("read", "read", "read", "write", "atomic")
    threads = [
        [
            [
                op
                for _ in range(n_steps)
                for op in (
                    *(Op(kinds[draw(5)], ("shared", "global")[draw(2)], draw(n_words)) for _ in range(draw(3))),
                    BARRIER,
                )
            ]
            for _ in range(n_threads)
        ]
        for _ in range(n_blocks)
    ]
    if draw(5) == 0:
        threads[draw(n_blocks)][draw(n_threads)].remove(BARRIER)
    return [threads]


def as_text(trace: Trace) -> str:
    """A trace as it travels: trees are not nested as deeply."""
    return json.dumps(trace)


def of_text(text: str) -> Trace:
    """The trace that `as_text` wrote."""
    return [[[[Op(*op) for op in thread] for thread in block] for block in launch] for launch in json.loads(text)]
