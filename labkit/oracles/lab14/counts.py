"""Lab 14: what each algorithm sends on 1 to 8 ranks, and in how many rounds.

Counted on the simulated network and stored. Students have this file, and the formulas are for them to write.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab14.group import Group


@dataclass(frozen=True)
class Cost:
    """The most that any rank sends (bytes, messages), what all send together, and the rounds in which it is done.

    In a round a rank sends at most one message and receives at most one.
    """

    bytes_sent: int
    messages: int
    bytes_total: int
    rounds: int


COUNTED = {
    "naive": ((0, 0, 0), (1, 2, 2), (2, 4, 4), (3, 6, 6), (4, 8, 8), (5, 10, 10), (6, 12, 12), (7, 14, 14)),
    "tree": ((0, 0, 0), (1, 2, 2), (2, 4, 4), (2, 6, 4), (3, 8, 6), (3, 10, 6), (3, 12, 6), (3, 14, 6)),
    "butterfly": ((0, 0, 0), (1, 2, 1), (2, 4, 3), (2, 8, 2), (3, 10, 4), (3, 12, 4), (3, 14, 4), (3, 24, 3)),
    "ring": ((0, 0, 0), (2, 4, 2), (4, 12, 4), (6, 24, 6), (8, 40, 8), (10, 60, 10), (12, 84, 12), (14, 112, 14)),
}
"""Messages of the rank that sends most, messages of all ranks, rounds: a triple for each number of ranks from 1 on."""


def cost(algorithm: str, case: Group) -> Cost:
    """What the algorithm sends in a case of at most 8 ranks."""
    most, together, rounds = COUNTED[algorithm][case.n_ranks - 1]
    if algorithm == "ring":
        return Cost(_chunks_bytes(case), most, least_total(case.n_ranks, case.n_bytes), rounds)
    return Cost(most * case.n_bytes, most, together * case.n_bytes, rounds)


def least_total(n: int, n_bytes: int) -> int:
    """What the ranks of any all-reduce send together at least: for each element, n-1 additions need a number from
    elsewhere, and n-1 ranks have to be told the sum."""
    return 2 * (n - 1) * n_bytes


def _chunks_bytes(case: Group) -> int:
    """The whole tensor twice, less two chunks that are neighbours, the shortest ones that there are.

    Chunks are ⌊elements / n⌋ long or one longer, the longer ones first.
    """
    if case.n_ranks == 1:
        return 0
    least, rest = divmod(case.n_elements, case.n_ranks)
    left_out = 2 * least + (rest == case.n_ranks - 1)
    return (2 * case.n_elements - left_out) * getattr(torch, case.dtype).itemsize
