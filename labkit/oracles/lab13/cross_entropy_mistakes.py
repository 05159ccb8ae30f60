"""Lab 13: what the usual mistakes make of a loss and its gradient; the hints of `cross_entropy` ask for it.

Nothing here says how close a right result has to be.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab13.cross_entropy import MASKED_ROW, Tokens
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun


@once
def by_torch(run: CaseRun[Tokens]) -> tuple[Tensor, Tensor]:
    """Loss and gradient in float64."""
    logits = run.tree["logits"].double().requires_grad_()
    loss = F.cross_entropy(logits, run.tree["targets"], ignore_index=run.case.ignore_index)
    (dlogits,) = torch.autograd.grad(loss, logits, run.tree["dloss"].double())
    return loss.detach(), dlogits


def counted(run: CaseRun[Tokens]) -> Tensor:
    """Which rows count, (n_tokens,)."""
    return run.tree["targets"] != run.case.ignore_index


def near(case: Tokens, got: Tensor, expected: Tensor) -> bool:
    rtol = max(8 * torch.finfo(getattr(torch, case.dtype)).eps, 1e-3)
    return torch.allclose(got.double(), expected.double(), rtol=rtol, atol=1e-6)


def scaled(run: CaseRun[Tokens], factor: float, rows: Tensor | slice = slice(None)) -> bool:
    """Whether the gradient is the right one times a factor, in these rows."""
    return near(run.case, run.got["dlogits"][rows], factor * by_torch(run)[1][rows])


def shares(run: CaseRun[Tokens]) -> tuple[int, int]:
    """(tokens that count, all tokens)"""
    return int(counted(run).sum()), run.case.n_tokens


def is_nan_in(got: dict, row: int) -> bool:
    return bool(got["dlogits"][row].isnan().any())


def ignored_keep_logits(run: CaseRun[Tokens]) -> bool:
    """The rows that do not count hold what they held, perhaps multiplied by something."""
    rows = ~counted(run)
    ratio = run.got["dlogits"][rows].double() / run.tree["logits"][rows].double()
    return bool((ratio != 0).all() and torch.allclose(ratio, ratio[0, 0], rtol=0.02))


def ignored_take_part(run: CaseRun[Tokens]) -> bool:
    return bool((run.got["dlogits"][~counted(run)] != 0).any())


def writes_behind_the_row(run: CaseRun[Tokens]) -> bool:
    """Logits of minus infinity have a gradient, or NaN comes from lanes of the next row and past the last one."""
    if run.measured["races"] and run.measured["out_of_bounds"] and run.got["dlogits"].isnan().any():
        return True
    row = run.got["dlogits"][MASKED_ROW, : run.case.masked_before].double() * shares(run)[0] / run.case.dloss
    # Lanes past the end of a row reach into the next one, but not to all of it.
    return bool((row != 0).any() and (row == 0).any() and (row.abs() < 0.5).all())


def holds_logits(run: CaseRun[Tokens], rows: Tensor, first: int = 0) -> Tensor:
    """Where the gradient is what was there before, perhaps times the incoming one, from a column on, (rows, vocab)."""
    got, before = (one[rows, first:].double() for one in (run.got["dlogits"], run.tree["logits"]))
    return (got == before) | torch.isclose(got, before * run.case.dloss, rtol=0.02)


def last_block_left_out(run: CaseRun[Tokens]) -> bool:
    """In the rows that count, the columns past the last whole block were left as they were."""
    vocab = run.case.vocab
    firsts = {vocab // size * size for size in (2**power for power in range(4, 17))} - {vocab}
    return any(holds_logits(run, counted(run), first).all() for first in firsts)


def rows_left_out(run: CaseRun[Tokens]) -> bool:
    """Some rows that count were left as they were, although every program kept to a row of its own."""
    return bool(holds_logits(run, counted(run)).all(-1).any()) and not _leaves_its_row(run)


def rows_elsewhere(run: CaseRun[Tokens]) -> bool:
    """Some rows that count were left as they were, and programs met in a row or were outside the matrix."""
    return bool(holds_logits(run, counted(run)).all(-1).any()) and _leaves_its_row(run)


def _leaves_its_row(run: CaseRun[Tokens]) -> bool:
    return bool(run.measured["races"] or run.measured["out_of_bounds"])


def everything_is_nan(run: CaseRun[Tokens]) -> bool:
    """All rows that count, also the one whose logits neither overflow nor vanish."""
    return bool(run.got["dlogits"][counted(run)].isnan().all())


def mean_over_all(run: CaseRun[Tokens]) -> object:
    n_counted, n_all = shares(run)
    if n_all - n_counted < 16 * torch.finfo(run.tree["logits"].dtype).eps * n_all:
        # So near to 1 a factor does not show in a gradient of 16 bits.
        return CANNOT_TELL
    return not gradient_is_right(run) and scaled(run, n_counted / n_all)


def not_divided(run: CaseRun[Tokens]) -> bool:
    return scaled(run, shares(run)[0])


def ignores_dloss(run: CaseRun[Tokens]) -> bool:
    return scaled(run, 1 / run.case.dloss)


def dloss_takes_part_wrongly(run: CaseRun[Tokens]) -> object:
    """Multiplied by the square of the incoming gradient, divided by it, or added to it."""
    dloss = run.case.dloss
    if near(run.case, run.got["dlogits"], by_torch(run)[1] / dloss + dloss):
        return True
    if dloss == 1:
        return CANNOT_TELL if gradient_is_right(run) else False
    return scaled(run, dloss) or scaled(run, dloss**-2)


def loss_is_wrong(run: CaseRun[Tokens]) -> bool:
    return not torch.isclose(run.got["loss"].double(), by_torch(run)[0], rtol=1e-3)


def divided_twice(run: CaseRun[Tokens]) -> bool:
    return scaled(run, 1 / shares(run)[0])


def has_wrong_sign(run: CaseRun[Tokens]) -> bool:
    return scaled(run, -1)


def ones(run: CaseRun[Tokens]) -> Tensor:
    """What was subtracted from the probabilities, (rows that count, vocab), if everything else is right."""
    rows, factor = counted(run), run.case.dloss / shares(run)[0]
    right = by_torch(run)[1]
    hot = F.one_hot(run.tree["targets"][rows], run.case.vocab)
    return hot - (run.got["dlogits"][rows].double() - right[rows]) / factor


def one_is_elsewhere(run: CaseRun[Tokens]) -> bool:
    """Everything is right but the place of the 1: it is somewhere else, or several times, or nowhere."""
    found = ones(run)
    is_one = torch.isclose(found, torch.ones_like(found), atol=0.02)
    return bool((is_one | (found.abs() < 0.02)).all())


def sums_are_wrong(run: CaseRun[Tokens]) -> bool:
    """The gradients of a row do not sum up to 0, so the probabilities do not sum up to 1."""
    sums = run.got["dlogits"][counted(run)].double().sum(-1) * shares(run)[0] / run.case.dloss
    return bool((sums.abs() > 0.05).any())


def one_from_rounded(run: CaseRun[Tokens]) -> bool:
    """The probability, or its share of the mean, was rounded to the dtype of the logits before 1 was subtracted."""
    short, n_counted, rows = run.tree["logits"].dtype, shares(run)[0], counted(run)
    right = by_torch(run)[1]
    picked = run.tree["targets"][rows, None]
    at_targets = right[rows].gather(1, picked) * n_counted / run.case.dloss
    p = at_targets + 1
    ways = (p.to(short).double() - 1, (p / n_counted).to(short).double() * n_counted - 1)
    got = run.got["dlogits"][rows].double()
    others = got.scatter(1, picked, 0.0), right[rows].scatter(1, picked, 0.0)
    found = got.gather(1, picked) * n_counted / run.case.dloss
    eps = torch.finfo(short).eps
    return near(run.case, *others) and any(
        torch.allclose(found, way, rtol=2 * eps) and not torch.allclose(way, at_targets, rtol=eps) for way in ways
    )


def one_is_not_divided(run: CaseRun[Tokens]) -> bool:
    """At the target, 1 is subtracted after the division by the number of tokens."""
    found = ones(run)
    n_counted = shares(run)[0]
    is_whole = torch.isclose(found, torch.full_like(found, n_counted), rtol=0.02)
    return n_counted > 1 and bool((is_whole.sum(-1) == 1).all() and (is_whole | (found.abs() < 0.02)).all())


def scaled_in_part(run: CaseRun[Tokens]) -> bool:
    """Some of it is the right gradient, and the rest is what a gradient of 1 would have brought."""
    right = by_torch(run)[1]
    rest = ~torch.isclose(run.got["dlogits"].double(), right, rtol=0.02, atol=1e-6)
    unscaled = torch.isclose(run.got["dlogits"].double(), right / run.case.dloss, rtol=0.02, atol=1e-6)
    return bool(rest.any() and (~rest & (right != 0)).any() and unscaled[rest].all())


def first_row_alone(run: CaseRun[Tokens]) -> bool:
    """The first row is right, and none of the others that count, so that the loss is not, either."""
    if torch.isclose(run.got["loss"].double(), by_torch(run)[0], rtol=1e-3):
        return False
    later = counted(run)
    later[0] = False
    right = by_torch(run)[1]
    is_right = [near(run.case, run.got["dlogits"][row], right[row]) for row in later.nonzero().flatten().tolist()]
    return scaled(run, 1, slice(0, 1)) and not any(is_right)


def wrong_count(run: CaseRun[Tokens]) -> object:
    """Loss and gradient are right, but for one and the same factor."""
    loss = by_torch(run)[0]
    factor = float(run.got["loss"].double() / loss)
    if not 0 < factor < math.inf or gradient_is_right(run):
        # A factor near 1 does not show in a gradient of 16 bits.
        return CANNOT_TELL if 1e-3 < abs(factor - 1) < 16 * torch.finfo(run.tree["logits"].dtype).eps else False
    return abs(factor - 1) > 1e-3 and scaled(run, factor)


def count_rounded(run: CaseRun[Tokens]) -> object:
    """The number of tokens that count was held in the dtype of the logits."""
    n_counted = shares(run)[0]
    rounded = float(torch.tensor(float(n_counted), dtype=run.tree["logits"].dtype))
    if rounded == n_counted:
        return CANNOT_TELL
    return torch.allclose(run.got["loss"].double(), by_torch(run)[0] * n_counted / rounded, rtol=1e-4)


def loss_rounded(run: CaseRun[Tokens]) -> bool:
    """Of 16 bits, or off by what their rounding makes."""
    short = run.tree["logits"].dtype
    if short == torch.float32:
        return False
    return torch.allclose(run.got["loss"].double(), by_torch(run)[0], rtol=2 * torch.finfo(short).eps)


def gradient_is_right(run: CaseRun[Tokens]) -> bool:
    return scaled(run, 1)


def target_read_too_late(run: CaseRun[Tokens]) -> bool:
    """The loss holds the gradient at the target in place of the logit there."""
    rows = counted(run)
    picked = run.tree["targets"][rows, None]
    gradient = (by_torch(run)[1] / run.case.dloss)[rows].gather(1, picked)
    late = (run.tree["logits"][rows].double().logsumexp(-1) - gradient.squeeze(1)).mean()
    return torch.allclose(run.got["loss"].double(), late, rtol=1e-3)


def is_sum(run: CaseRun[Tokens]) -> bool:
    total = by_torch(run)[0] * shares(run)[0]
    return torch.allclose(run.got["loss"].double(), total, rtol=1e-3)


def divided_by_rows(run: CaseRun[Tokens]) -> bool:
    """Divided by the number of all rows, instead of by those that count or after it."""
    n_counted, n_all = shares(run)
    mean = by_torch(run)[0]
    wrong = (mean * n_counted / n_all, mean / n_all)
    return any(torch.allclose(run.got["loss"].double(), one, rtol=1e-3) for one in wrong)


def lacks_the_maximum(run: CaseRun[Tokens]) -> bool:
    """The logarithm of a sum below the row's maximum, without that maximum."""
    tops = run.tree["logits"][counted(run)].double().amax(-1)
    return torch.allclose(run.got["loss"].double(), by_torch(run)[0] - tops.mean(), rtol=1e-3)
