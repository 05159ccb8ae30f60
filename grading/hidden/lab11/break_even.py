"""Lab 11: hidden logs of calls."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.break_even import CHANGE, START, Log


def _process(rng: random.Random, n_calls: int, sizes: tuple[int, ...]) -> tuple[str | int, ...]:
    return (START, *rng.choices(sizes, k=n_calls))


def _ahead_twice(rng: random.Random, a: int, b: int) -> Log:
    """Ahead after the calls of one size; a second size puts it behind, and as many calls later it is ahead again."""
    # An odd gain, so that the total never equals the eager one: that is what the first log is for.
    won_ms, n_calls = rng.choice((7, 9, 11)), rng.randint(4, 6)
    compiled_ms = rng.randint(11, 25)
    return Log(
        (START, *[a] * n_calls, b, *rng.choices((a, b), k=n_calls)),
        eager_ms=compiled_ms + won_ms,
        compiled_ms=compiled_ms,
        cold_ms=n_calls * won_ms - rng.randint(1, won_ms - 1),
    )


def logs(rng: random.Random) -> tuple[Log, ...]:
    """One size, several, restarts, a change; and a machine on which compiling never pays."""
    costs = {"eager_ms": rng.randint(30, 45), "compiled_ms": rng.randint(11, 25)}
    a, b, c = rng.sample(range(2, 40), 3)
    return (
        Log(_process(rng, 8, (a,)), cold_ms=10 * rng.randint(2, 6)),
        Log((START, 1, a, b, c, *rng.choices((a, b, c, 1), k=11)), cold_ms=rng.randint(40, 60), **costs),
        Log(
            tuple(event for n in range(4) for event in _process(rng, rng.randint(3, 7), (a, b) if n % 2 else (a,))),
            cold_ms=rng.randint(50, 70),
            warm_ms=rng.randint(6, 13),
            **costs,
        ),
        Log(
            (
                *_process(rng, 4, (a, b)),
                CHANGE,
                a,
                *_process(rng, 8, (b, a)),
                START,
                a,
                c,
                1,
                *rng.choices((a, 1, c), k=5),
            ),
            cold_ms=rng.randint(40, 60),
            warm_ms=rng.randint(3, 9),
            **costs,
        ),
        _ahead_twice(rng, a, b),
        Log(_process(rng, 8, (a, b)), eager_ms=20, compiled_ms=rng.randint(20, 22)),
    )


BREAK_EVEN = Hidden("11-break-even", logs)
