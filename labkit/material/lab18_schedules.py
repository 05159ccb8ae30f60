"""Lab 18: a student's schedule with another warm-up, to see what the warm-up is good for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Entry = tuple
Answered = Callable[..., Sequence[Entry]]


def with_warm_up(order: Sequence[Entry], warm_up: int) -> list[Entry]:
    """The same passes in pairs of one forward and one backward pass, after so many forward passes."""
    forward = [entry for entry in order if entry[0] == "F"]
    backward = [entry for entry in order if entry[0] == "B"]
    pairs = [pass_ for pair in zip(forward[warm_up:], backward) for pass_ in pair]
    return [*forward[:warm_up], *pairs, *backward[len(forward[warm_up:]) :]]


def running_ahead(answer: Callable[[int, int, int], Sequence[Entry]]) -> Answered:
    """one_f_one_b, with two forward passes in its warm-up for each later stage instead of one."""

    def order(stage: int, n_stages: int, n_microbatches: int) -> list[Entry]:
        return with_warm_up(answer(stage, n_stages, n_microbatches), 2 * (n_stages - 1 - stage))

    return order


def without_reserve(answer: Callable[[int, int, int, int], Sequence[Entry]]) -> Answered:
    """interleaved, with one forward pass in its warm-up for each later rank instead of two."""

    def order(rank: int, n_ranks: int, n_chunks: int, n_microbatches: int) -> list[Entry]:
        warm_up = n_ranks - 1 - rank + (n_chunks - 1) * n_ranks
        return with_warm_up(answer(rank, n_ranks, n_chunks, n_microbatches), warm_up)

    return order
