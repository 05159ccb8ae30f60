"""Lab 13: what the usual mistakes make of the statistics of a softmax, and whether they explain what came back.

What is said of them stands in `softmax_hints`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from labkit.exercises.lab13.online_softmax import Blocks
from labkit.spec import CANNOT_TELL, CaseRun


def is_like(got: Tensor, wrong: Tensor, where: Tensor | slice = slice(None)) -> bool:
    return torch.allclose(got.double()[where], wrong.double()[where], rtol=1e-3, atol=1e-6)


def by_block(run: CaseRun[Blocks]) -> list[tuple[Tensor, Tensor]]:
    """(top, sum of exponentials below it) of each block alone, in float64; 0 where a block has minus infinity only."""
    blocks = run.tree["x"].double().split(run.case.widths, dim=1)
    return [(block.amax(1), torch.nan_to_num((block - block.amax(1, True)).exp()).sum(1)) for block in blocks]


def finite_rows(tree: dict) -> Tensor:
    """Rows without any minus infinity: the mistakes below show in these."""
    return (tree["x"] > -torch.inf).all(1)


def running_sum(run: CaseRun[Blocks], factor: Callable[[Tensor], Tensor], of_block: Callable = torch.zeros_like):
    """The total if, at every block, the old sum is multiplied by `factor(old top - new top)`.

    of_block: of (block's top - new top), the exponent of what the block's own sum is multiplied by.
    """
    top, total = torch.full((run.case.n_rows,), -torch.inf, dtype=torch.float64), torch.zeros(run.case.n_rows).double()
    for block_top, block_total in by_block(run):
        new = torch.maximum(top, block_top)
        old = torch.where(total > 0, total * factor(top - new), 0.0)
        total = old + block_total * of_block(block_top - new).exp()
        top = new
    return total


def shows_in_several_blocks(condition: Callable[[CaseRun[Blocks]], bool]) -> Callable[[CaseRun[Blocks]], object]:
    """Of a mistake between two blocks: where there is only one, it does not show."""
    return lambda run: CANNOT_TELL if len(run.case.widths) == 1 else condition(run)


@shows_in_several_blocks
def never_rescales(run: CaseRun[Blocks]) -> bool:
    """The old sum stays as it is; the block's exponentials are taken below the block's top, or below the new one."""
    wrong = [running_sum(run, torch.ones_like, of_block) for of_block in (torch.zeros_like, lambda gap: gap)]
    return any(is_like(run.got["total"], one, finite_rows(run.tree)) for one in wrong)


@shows_in_several_blocks
def wrong_sign(run: CaseRun[Blocks]) -> bool:
    """Of the old sum's factor, or of both."""
    ways = (lambda gap: gap, lambda gap: -gap)
    wrong = [running_sum(run, lambda gap: torch.exp(-gap), of_block) for of_block in ways]
    return any(is_like(run.got["total"], one, finite_rows(run.tree)) for one in wrong)


@shows_in_several_blocks
def own_sum_not_moved(run: CaseRun[Blocks]) -> bool:
    """The old sum is rescaled; the block's own stays below the block's top, also where that is the smaller one."""
    return is_like(run.got["total"], running_sum(run, torch.exp), finite_rows(run.tree))


@shows_in_several_blocks
def last_block_only(run: CaseRun[Blocks]) -> bool:
    return is_like(run.got["top"], by_block(run)[-1][0], finite_rows(run.tree))


def total_is_the_logarithm(run: CaseRun[Blocks]) -> bool:
    """The logarithm of the sum, or that and the maximum, in place of the sum."""
    top, total = (run.expected[name] for name in ("top", "total"))
    rows = finite_rows(run.tree)
    return any(is_like(run.got["total"], one, rows) for one in (total.log(), top + total.log()))


def starts_at_zero(run: CaseRun[Blocks]) -> bool:
    """No top is below 0, though rows are."""
    return bool((run.got["top"] == run.tree["x"].float().amax(1).clamp(min=0)).all())


def one_maximum_for_all(run: CaseRun[Blocks]) -> bool:
    """Every row has the maximum of the whole matrix."""
    return bool((run.got["top"] == run.tree["x"].float().amax()).all())


def only_where_nothing(run: CaseRun[Blocks], holds: Callable[[Tensor], Tensor]) -> bool:
    """A maximum is wrong, and only where it should be -inf; there `holds` is true of it."""
    tops = [(run.got[name], run.expected[name]) for name in ("top", "merged_top")]
    wrong = [(got, right) for got, right in tops if not torch.equal(got, right)]
    return bool(wrong) and all(
        torch.equal(got[right > -torch.inf], right[right > -torch.inf]) and bool(holds(got[right == -torch.inf]).all())
        for got, right in wrong
    )


def second_pass_is_empty(run: CaseRun[Blocks]) -> bool:
    """The maximum is right, and nothing was summed up."""
    return is_like(run.got["top"], run.expected["top"]) and not run.got["total"].any()


def stats_are_right(run: CaseRun[Blocks]) -> bool:
    right = run.expected
    return is_like(run.got["top"], right["top"]) and is_like(run.got["total"], right["total"])


def merged_unscaled(run: CaseRun[Blocks]) -> bool:
    """Neither sum, or only one of the two, was moved to the larger maximum."""
    tree = run.tree
    top = torch.maximum(tree["left_top"], tree["right_top"])
    some = top > -torch.inf
    left, right = (tree[f"{side}_total"].double()[some] for side in ("left", "right"))
    to_left, to_right = (torch.exp(tree[f"{side}_top"] - top).double()[some] for side in ("left", "right"))
    got_some = run.got["merged_total"][some]
    return any(is_like(got_some, one) for one in (left + right, left * to_left + right, left + right * to_right))


def merged(run: CaseRun[Blocks], name: str, wrong: Callable[..., Tensor]) -> bool:
    """merge_stats gave, where both parts have seen numbers, what `wrong` makes of (both maxima, both sums, the factors
    that bring these to the larger maximum)."""
    tree = run.tree
    tops, totals = ([tree[f"{side}_{one}"].double() for side in ("left", "right")] for one in ("top", "total"))
    both = torch.minimum(*tops) > -torch.inf
    tops, totals = ([one[both] for one in pair] for pair in (tops, totals))
    factors = [torch.exp(top - torch.maximum(*tops)) for top in tops]
    return is_like(run.got[f"merged_{name}"][both], wrong(tops, totals, factors))


def summed_by_block(run: CaseRun[Blocks], own: Callable[[Tensor, Tensor, int], Tensor]) -> bool:
    """The total is right but for what a block's sum is, which is own(its maximum, its sum below that, its width)."""
    parts, top = by_block(run), run.tree["x"].double().amax(1)
    totals = [
        own(block_top, total, width) * (block_top - top).exp()
        for (block_top, total), width in zip(parts, run.case.widths, strict=True)
    ]
    wrong = torch.stack(totals).sum(0)
    # Some are too large for float32.
    return is_like(run.got["total"], wrong, finite_rows(run.tree) & wrong.float().isfinite())


@shows_in_several_blocks
def first_block_only(run: CaseRun[Blocks]) -> bool:
    return is_like(run.got["top"], by_block(run)[0][0], finite_rows(run.tree))


def rounded_differences(run: CaseRun[Blocks]) -> bool:
    """Float16 sums that are nearly right, and no others are wrong."""
    right = run.expected
    near = torch.allclose(run.got["total"], right["total"], rtol=5e-3, atol=1e-6) and is_like(
        run.got["top"], right["top"]
    )
    return (
        run.case.dtype == "float16"
        and near
        and not torch.allclose(run.got["total"], right["total"], rtol=1e-4, atol=1e-6)
    )


def undefined(name: str) -> Callable[[CaseRun[Blocks]], bool]:
    return lambda run: bool(run.got[name].isnan().any())
