"""Lab 14: what is true of an all-reduce by way of one rank."""

from __future__ import annotations

from labkit.oracles.lab14.four_all_reduces import oracle, some_have_sum
from labkit.spec import Hint

NAIVE = oracle(
    "naive",
    "Each rank sends its tensor once, to rank 0, and rank 0 sends the sum to each: 2(n-1) messages of S bytes in all, "
    "in the dtype of x. If everybody sends to everybody, there are n(n-1).",
    "Rank 0 can receive one message a round and send one, so there are n-1 rounds in and n-1 out. Look for a message "
    "that has to wait although rank 0 is free.",
    (
        Hint(
            some_have_sum,
            "Rank 0 has the sum, and not all the others have it. Send it only when the tensors of all ranks are in it: "
            "one loop that receives, then another that sends.",
        ),
    ),
)
