"""Lab 15: what the usual mistakes of batch normalization over ranks look like.

In the statistics, in the outputs that these make, and in the gradients.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab15.sync_bn import EPS, MOMENTUM, Rows
from labkit.oracles.lab15.sync_bn_values import close
from labkit.spec import CANNOT_TELL, CaseRun

LARGE_MEAN = 100
"""In standard deviations: from here on float32 loses too many digits of the squares."""


def outs_with(run: CaseRun[Rows], mean: Tensor | list[Tensor], var: Tensor | list[Tensor]) -> list[Tensor]:
    """The outputs, had these been the statistics; of each rank, or one for all."""
    n = run.case.n_ranks
    means, vars_ = (value if isinstance(value, list) else [value] * n for value in (mean, var))
    return [
        (part["x"] - mean) / (var + EPS).sqrt() * run.tree["weight"] + run.tree["bias"]
        for part, mean, var in zip(run.tree["ranks"], means, vars_, strict=True)
    ]


def out_is(statistics: Any) -> Any:
    """A diagnosis: the outputs are what they would be with these mean and variance, and wrong."""

    def when(run: CaseRun[Rows]) -> bool:
        wrong = outs_with(run, *statistics(run.tree))
        right = run.expected["ranks"]
        tolerance = close(run)
        return all(
            compare(out, one["out"], tolerance) is None for out, one in zip(wrong, run.got["ranks"], strict=True)
        ) and any(compare(good["out"], one["out"], tolerance) for good, one in zip(right, run.got["ranks"]))

    return when


def by_ranks(when: Any) -> Any:
    """`when`, on what the ranks' own statistics make. CANNOT_TELL where a rank has no rows, whose mean is whatever 0/0
    was replaced by, and where the mean is so large that squares cancel."""
    return lambda run: CANNOT_TELL if 0 in run.case.rows or abs(run.case.mean) > LARGE_MEAN else when(run)


def each(tree: dict, statistic: Any) -> list[Tensor]:
    return [statistic(part["x"]) for part in tree["ranks"]]


def mean(x: Tensor) -> Tensor:
    return x.mean(0)


def var(x: Tensor) -> Tensor:
    return (x - x.mean(0)).square().mean(0)


def all_rows(tree: dict) -> Tensor:
    return torch.cat([part["x"] for part in tree["ranks"]])


def averaged(tree: dict, statistic: Any) -> Tensor:
    """Every rank counts alike."""
    return torch.stack(each(tree, statistic)).mean(0)


def weighed(tree: dict, statistic: Any) -> Tensor:
    """Every rank counts by its rows, and one without any does not count."""
    parts = [(len(part["x"]), statistic(part["x"])) for part in tree["ranks"] if len(part["x"])]
    return sum(n_rows * value for n_rows, value in parts) / sum(n_rows for n_rows, _ in parts)


def by_squares(tree: dict) -> tuple[Tensor, Tensor]:
    """The mean and the mean of squares, every rank alike."""
    centre = averaged(tree, mean)
    return centre, averaged(tree, lambda x: x.square().mean(0)) - centre.square()


def about_the_means(tree: dict) -> tuple[Tensor, Tensor]:
    """The mean of the ranks' means, every rank alike, and the mean square of all rows' distances from it."""
    centre = averaged(tree, mean)
    return centre, (all_rows(tree) - centre).square().mean(0)


def eps_outside(tree: dict) -> tuple[Tensor, Tensor]:
    """What with eps under the root looks like eps added to the root."""
    x = all_rows(tree)
    return mean(x), (var(x).sqrt() + EPS).square() - EPS


def values_of(got: dict, name: str) -> list[Any]:
    return [one[name] for one in got["ranks"]]


def only_wrong(run: CaseRun[Rows]) -> list[str]:
    """The names of what is wrong on some rank."""
    tolerance = close(run)
    pairs = list(zip(run.expected["ranks"], run.got["ranks"], strict=True))
    return [name for name in pairs[0][0] if any(compare(good[name], one[name], tolerance) for good, one in pairs)]


def summed(run: CaseRun[Rows], name: str) -> bool:
    """Each rank has the sum over all ranks of this gradient."""
    right = run.expected["ranks"]
    total = sum(one[name] for one in right)
    return run.case.n_ranks > 1 and all(compare(total, one, close(run)) is None for one in values_of(run.got, name))


def as_if_constant(run: CaseRun[Rows]) -> bool:
    """The gradient of x without what goes through mean and variance."""
    x = all_rows(run.tree)
    factor = run.tree["weight"] / (var(x) + EPS).sqrt()
    return all(
        compare(part["grad"] * factor, one, close(run)) is None
        for part, one in zip(run.tree["ranks"], values_of(run.got, "x_grad"), strict=True)
    )


def another_divisor(run: CaseRun[Rows]) -> bool:
    """What running_var was moved to is the variance of all rows times one factor near 1."""
    measured = (values_of(run.got, "running_var")[0] - (1 - MOMENTUM) * run.tree["running_var"]) / MOMENTUM
    factor = measured / var(all_rows(run.tree))
    return bool((factor > 0.5).all() and (factor < 2).all() and factor.max() - factor.min() < 0.01)


def unmoved_without_rows(run: CaseRun[Rows]) -> bool:
    """The running mean is right where there are rows, and as before where there are none."""
    right, near = run.expected["ranks"], close(run)
    wanted = [
        one["running_mean"] if n else run.tree["running_mean"] for n, one in zip(run.case.rows, right, strict=True)
    ]
    pairs = zip(wanted, values_of(run.got, "running_mean"), strict=True)
    return 0 in run.case.rows and all(compare(value, found, near) is None for value, found in pairs)


def no_bias(run: CaseRun[Rows]) -> bool:
    """The outputs are right but for the bias."""
    right = run.expected["ranks"]
    pairs = zip(right, values_of(run.got, "out"), strict=True)
    return all(compare(good["out"], out + run.tree["bias"], close(run)) is None for good, out in pairs)


def own_rows_only(run: CaseRun[Rows]) -> bool:
    """The gradient of x whose two means were taken over the rank's own rows."""
    x = all_rows(run.tree)
    scale = (var(x) + EPS).sqrt()
    for part, one in zip(run.tree["ranks"], values_of(run.got, "x_grad"), strict=True):
        normalized, grad = (part["x"] - mean(x)) / scale, part["grad"] * run.tree["weight"]
        wrong = (grad - grad.mean(0) - normalized * (grad * normalized).mean(0)) / scale
        if compare(wrong, one, close(run)):
            return False
    return run.case.n_ranks > 1
