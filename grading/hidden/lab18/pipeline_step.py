"""Lab 18: hidden cases of a training step over stages."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab18.pipeline_step import Steps


def gpipe(n_stages: int, n_micro: int, backward: bool = False) -> tuple[str, ...]:
    """All forward passes, then all backward passes, from the first micro-batch on or from the last."""
    forward = [f"F{k}" for k in range(n_micro)]
    back = [f"B{k}" for k in range(n_micro)]
    return (" ".join(forward + (back[::-1] if backward else back)),) * n_stages


def one_f_one_b(n_stages: int, n_micro: int) -> tuple[str, ...]:
    """As soon as a backward pass can run, it runs."""
    orders = []
    for rank in range(n_stages):
        n_ahead = min(n_stages - rank, n_micro)
        passes = [f"F{k}" for k in range(n_ahead)]
        for k in range(n_micro):
            passes.append(f"B{k}")
            if n_ahead + k < n_micro:
                passes.append(f"F{n_ahead + k}")
        orders.append(" ".join(passes))
    return tuple(orders)


def step_cases(rng: random.Random) -> tuple[Steps, ...]:
    """Both orders of each schedule, micro-batches alike and not, one of which counts for nothing, and one stage."""

    def uneven(n_micro: int) -> tuple[tuple[int, int], ...]:
        return tuple((rng.randint(1, 4), rng.randint(1, 7)) for _ in range(n_micro))

    def even(n_micro: int) -> tuple[tuple[int, int], ...]:
        return ((rng.randint(1, 3), rng.randint(2, 5)),) * n_micro

    def layers(n_stages: int) -> tuple[int, ...]:
        return tuple(rng.randint(1, 2) for _ in range(n_stages))

    def drawn(name: str, orders: tuple[str, ...], sizes: tuple[tuple[int, int], ...], **more: int) -> Steps:
        return Steps(name, orders, sizes, layers(len(orders)), rng.randint(3, 6), rng.randint(5, 9), **more)

    few, many = rng.randint(3, 4), rng.randint(5, 7)
    return (
        drawn("1F1B", one_f_one_b(3, many), uneven(many)),
        drawn("GPipe", gpipe(3, few), even(few)),
        drawn("GPipe, backward from the last", gpipe(3, few, True), uneven(few)),
        drawn("1F1B", one_f_one_b(3, many), even(many), all_ignored=rng.randrange(many)),
        drawn("1F1B", one_f_one_b(4, many), even(many)),
        drawn("1F1B", one_f_one_b(2, few), uneven(few)),
        drawn("one stage", one_f_one_b(1, 3), uneven(3)),
        Steps("1F1B", one_f_one_b(3, 24), ((8, rng.randint(30, 36)),) * 24, width=32, n_steps=1),
    )


def large_cases(rng: random.Random) -> tuple[Steps, ...]:
    """24 micro-batches of 256 tokens: if rank 0 keeps all of them, it holds some 60 MiB too many."""
    return (Steps("1F1B", one_f_one_b(3, 24), ((2, 128),) * 24, width=256 + rng.randint(0, 8), n_steps=1),)


PIPELINE_STEP = Hidden("18-pipeline-step", step_cases, memory_cases=large_cases)
