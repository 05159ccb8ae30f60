"""Lab 13: what a student is told whose statistics of a softmax are wrong, the specific first."""

from __future__ import annotations

import torch

from labkit.oracles.lab13.softmax_mistakes import (
    first_block_only,
    is_like,
    last_block_only,
    merged,
    merged_unscaled,
    never_rescales,
    one_maximum_for_all,
    only_where_nothing,
    own_sum_not_moved,
    rounded_differences,
    second_pass_is_empty,
    starts_at_zero,
    stats_are_right,
    summed_by_block,
    total_is_the_logarithm,
    undefined,
    wrong_sign,
)
from labkit.spec import Hint

HINTS = (
    Hint(
        starts_at_zero,
        "The maximum never goes below 0: it should start at -float('inf'), so that the first element replaces it.",
    ),
    Hint(
        one_maximum_for_all,
        "Every row has the maximum of the whole matrix. Each row needs its own: take it along dim=1.",
    ),
    Hint(
        total_is_the_logarithm,
        "`total` is a logarithm. It is the sum itself, relative to the maximum; a logsumexp holds both in one number.",
    ),
    Hint(
        second_pass_is_empty,
        "The maximum is right, and nothing was summed up. The blocks come from an iterator, which a second loop "
        "finds empty: keep the maximum and the sum in one loop.",
    ),
    Hint(
        lambda run: only_where_nothing(run, lambda top: top == 0),
        "A row of -inf alone has the maximum -inf, and here it has 0. Subtract 0 in place of such a maximum, but "
        "keep and return the maximum itself.",
    ),
    Hint(
        lambda run: only_where_nothing(run, lambda top: top.isfinite()),
        "A row of -inf alone has the maximum -inf: start at -float('inf'), not at the least finite number.",
    ),
    Hint(
        rounded_differences,
        "The differences or exponentials were rounded to float16: convert each block to float32 first.",
    ),
    Hint(
        last_block_only,
        "The maximum is that of the last block alone. Take the larger one of the old maximum and the block's.",
    ),
    Hint(
        never_rescales,
        "Old exponentials are relative to the old maximum. When the maximum grows, multiply the old sum by "
        "exp(old maximum - new maximum).",
    ),
    Hint(
        wrong_sign,
        "A sum is rescaled the wrong way round: the factor is exp(its own maximum - the larger one), at most 1.",
    ),
    Hint(
        own_sum_not_moved,
        "A block's own sum is relative to the block's maximum. Where the old maximum is larger, it takes the "
        "factor exp(block's maximum - old maximum).",
    ),
    Hint(
        lambda run: stats_are_right(run) and merged_unscaled(run),
        "merge_stats adds sums that are relative to different maxima. Bring both to the larger one first: each "
        "times exp(its own maximum - the larger one).",
    ),
    Hint(
        lambda run: is_like(run.got["merged_top"], run.expected["merged_total"]),
        "merge_stats returns its two numbers in the wrong order: first the maximum, then the sum.",
    ),
    Hint(
        lambda run: any(
            merged(run, "top", lambda tops, totals, factors, of=of: of(*tops)) for of in (torch.minimum, torch.add)
        ),
        "The maximum over both parts is the larger of their two maxima, row by row: torch.maximum.",
    ),
    Hint(
        lambda run: merged(run, "total", lambda tops, totals, f: totals[0] * f[1] + totals[1] * f[0]),
        "In merge_stats each sum got the other one's factor: it is exp(its own maximum - the larger one).",
    ),
    Hint(
        lambda run: merged(run, "total", lambda tops, totals, f: torch.maximum(totals[0] * f[0], totals[1] * f[1])),
        "The larger of two maxima is kept, but the two sums are added.",
    ),
    Hint(
        lambda run: summed_by_block(run, lambda top, total, width: total * top.exp()),
        "The exponentials are those of the elements. Subtract the maximum first, because `total` is relative to it "
        "and exp of a large element is infinite.",
    ),
    Hint(
        lambda run: summed_by_block(run, lambda top, total, width: total / width),
        "That is the mean of the exponentials. `total` is their sum.",
    ),
    Hint(
        lambda run: summed_by_block(run, lambda top, total, width: total.log()),
        "The sums of the blocks are logarithms, and logarithms cannot be added. `total` is the sum of the "
        "exponentials itself.",
    ),
    Hint(
        first_block_only,
        "Only the first block counts. Merge what each further block has with what there was before it.",
    ),
    Hint(
        # Behind those that go by rows without any minus infinity.
        lambda run: undefined("total")(run) or undefined("merged_total")(run),
        "NaN comes from -inf minus -inf, where a row has seen nothing but -inf. Subtract a maximum that is 0 "
        "there: torch.where(top == -float('inf'), 0, top).",
    ),
)
