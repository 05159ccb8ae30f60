"""Lab 14: what is true of an all-reduce by exchanges with ever more distant partners."""

from __future__ import annotations

from labkit.oracles.lab14.four_all_reduces import beyond_the_power_of_two, oracle
from labkit.spec import Hint

BUTTERFLY = oracle(
    "butterfly",
    "In each of the log₂ n exchanges a rank sends one tensor, in the dtype of x, to one partner; a rank beyond the "
    "largest power of two sends once in all.",
    "A butterfly takes log₂ n rounds, and two more where n is no power of two. In each of them all ranks send and "
    "receive at once.",
    (
        Hint(
            beyond_the_power_of_two,
            "It is right for a power of two only. Let each rank past the largest power of two send its tensor to one "
            "below before the exchanges, and get the sum after them.",
        ),
    ),
    errors={
        "but the ranks are the whole numbers": "That partner does not exist. The exchanges are among the largest power "
        "of two of ranks that is not above n, at distances below it; a rank beyond hands its tensor to one inside "
        "before them, and is given the sum after them.",
    },
)
