"""Lab 14: what is true of an all-reduce up a tree and down again."""

from __future__ import annotations

from labkit.oracles.lab14.four_all_reduces import beyond_the_power_of_two, oracle, some_have_sum
from labkit.spec import Hint

TREE = oracle(
    "tree",
    "No rank should send more than ⌈log₂ n⌉ times, all together 2(n-1) times: one tensor over each edge of the tree "
    "going up, one going down, in the dtype of x.",
    "There should be ⌈log₂ n⌉ rounds up and as many down. In round k half of the ranks that are left send, each to the "
    "one 2^k below it; whoever has to receive twice in a row, or to wait in a chain, makes a round more.",
    (
        Hint(
            beyond_the_power_of_two,
            "It is right for a power of two only: the ranks beyond are left out. A rank whose partner does not exist "
            "continues without one.",
        ),
        Hint(
            some_have_sum,
            "Rank 0 has the sum, and not all the others have it: a rank can pass it on only after it has come. On the "
            "way down the largest distance goes first.",
        ),
    ),
    errors={
        "but the ranks are the whole numbers": (
            "That partner does not exist, as happens where n is no power of two: a rank without a partner continues "
            "without one."
        ),
    },
)
