"""Lab 15: what is true of batch normalization over all ranks: PyTorch's on all rows, for one collective each way."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab15.sync_bn import EPS, MOMENTUM, Rows
from labkit.oracles.hints import any_of
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance

LARGE_MEAN = 100
"""In standard deviations: from here on float32 loses too many digits of the squares."""


def one_process(run: CaseRun[Rows]) -> dict[str, Any]:
    """All rows in one batch, in float64; each rank's share of the gradient of weight and bias is that of its rows."""
    tree = run.tree
    x = torch.cat([part["x"] for part in tree["ranks"]]).double().requires_grad_()
    names = ("weight", "bias", "running_mean", "running_var")
    weight, bias, running_mean, running_var = (tree[name].double() for name in names)
    weights, biases = ([value.clone().requires_grad_() for _ in tree["ranks"]] for value in (weight, bias))
    normalized = F.batch_norm(x, running_mean, running_var, None, None, True, MOMENTUM, EPS)
    outs = [
        rows * one + other
        for rows, one, other in zip(normalized.split(list(run.case.rows)), weights, biases, strict=True)
    ]
    torch.autograd.backward(outs, [part["grad"].double() for part in tree["ranks"]])
    return {
        "ranks": [
            {
                "out": out.detach().float(),
                "x_grad": x_grad.float(),
                "weight_grad": one.grad.float(),
                "bias_grad": other.grad.float(),
                "running_mean": running_mean.float(),
                "running_var": running_var.float(),
            }
            for out, x_grad, one, other in zip(outs, x.grad.split(list(run.case.rows)), weights, biases, strict=True)
        ]
    }


def close(run: CaseRun[Rows]) -> Tolerance:
    """float32 rounds mean and x alike, and the mean may be thousands of standard deviations."""
    error = 1e-4 + 5e-6 * abs(run.case.mean)
    return Tolerance(atol=error, rtol=error)


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


def in_words(run: Observation) -> str:
    """The call, and how many rows each rank has."""
    case = run.case
    ranks, rows = f"{case.n_ranks} rank{'s' * (case.n_ranks != 1)}", ", ".join(map(str, case.rows))
    return (
        f"sync_batch_norm(comm, x, ..., momentum={MOMENTUM}, eps={EPS}) on {ranks} with {rows} rows of "
        f"{case.n_channels} channels, whose mean is about {case.mean:g}"
    )


SYNC_BN = Oracle(
    id="15-sync-bn",
    call=in_words,
    places={f"{name}_grad": f"gradient of {name}" for name in ("x", "weight", "bias")},
    expect=one_process,
    tolerance=close,
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "collectives",
            2,
            "One collective each way is enough: put what a rank has to tell into one tensor with torch.cat.",
        ),
        Budget(
            "bytes_sent",
            # Gathered statistics go through n - 1 hands, and three numbers a channel are plenty; doubles are fine.
            lambda run: 2 * 8 * run.case.n_ranks * (3 * run.case.n_channels + 1),
            "Too many bytes: what travels are a few numbers for each channel, never the rows.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: 0 in run.case.rows and any(bool(out.isnan().any()) for out in values_of(run.got, "out")),
            "One rank has no rows, and its mean 0/0 spoils everybody's. Sums do not need a case of their own: divide "
            "after they have been added up.",
        ),
        Hint(
            out_is(lambda tree: (each(tree, mean), each(tree, var))),
            "Every rank normalized with the statistics of its own rows.",
        ),
        Hint(
            out_is(lambda tree: (each(tree, mean), var(all_rows(tree)))),
            "Every rank subtracted the mean of its own rows. The variance is that of all rows, and so is the mean.",
        ),
        Hint(no_bias, "The bias is missing: the output is weight * x_hat + bias."),
        Hint(
            by_ranks(out_is(lambda tree: (averaged(tree, mean), averaged(tree, var)))),
            "The variances were averaged. Each is about its own rank's mean, so how far the means lie apart is lost: "
            "combine sums, or add the squares of those distances.",
        ),
        Hint(
            out_is(lambda tree: (weighed(tree, mean), weighed(tree, var))),
            "The variances were averaged, by rows. Each is about its own rank's mean, so how far the means lie apart "
            "is lost: add the squares of those distances.",
        ),
        Hint(
            by_ranks(any_of(out_is(by_squares), out_is(about_the_means))),
            "Every rank counted alike, and they have different numbers of rows: the counts have to travel, too.",
        ),
        Hint(
            out_is(lambda tree: (mean(all_rows(tree)), all_rows(tree).var(0, unbiased=True))),
            "The rows are normalized with the biased variance (divided by n). The unbiased one is for running_var.",
        ),
        Hint(
            lambda run: (
                out_is(eps_outside)(run) or out_is(lambda tree: (mean(all_rows(tree)), var(all_rows(tree)) - EPS))(run)
            ),
            "eps is missing, or stands beside the root: it is added to the variance, under the root.",
        ),
        Hint(
            lambda run: abs(run.case.mean) > LARGE_MEAN and bool(only_wrong(run)),
            "Where the mean is large, E[x^2] - E[x]^2 cancels: nearly all digits are gone (lab 02). Let squares of "
            "distances from the rank's own mean travel, or add up in float64.",
        ),
        Hint(
            as_if_constant,
            "The gradient of x treats mean and variance as constants. They depend on every row of every rank.",
        ),
        Hint(
            own_rows_only,
            "The two sums of the backward pass run over the rank's own rows. They have to go over all rows of all "
            "ranks, which is the second collective.",
        ),
        Hint(
            lambda run: summed(run, "weight_grad") or summed(run, "bias_grad"),
            "The gradient of weight or bias is summed over the ranks already. It stays local, as that of any other "
            "parameter: data parallel training averages it later.",
        ),
        Hint(
            lambda run: set(only_wrong(run)) == {"weight_grad", "bias_grad"},
            "The gradient of weight is the sum of grad * x_hat over the own rows, that of bias the sum of grad. "
            "backward returns them in the order of forward's arguments.",
        ),
        Hint(
            unmoved_without_rows,
            "The rank without rows has its old running statistics. It normalizes nothing, but updates them as well.",
        ),
        Hint(
            lambda run: only_wrong(run) == ["running_var"] and another_divisor(run),
            "running_var follows the unbiased variance, n / (n - 1) times the other, and n counts the rows of all "
            "ranks.",
        ),
        Hint(
            lambda run: {"running_mean", "running_var"} & set(only_wrong(run)) and "out" not in only_wrong(run),
            "The running statistics are wrong: running = (1 - momentum) * running + momentum * new, written into the "
            "tensors that were given.",
        ),
        Hint(
            lambda run: only_wrong(run) == ["x_grad"],
            "The outputs are right and the gradient of x is not. With g = grad * weight it is "
            "(g - mean(g) - x_hat * mean(g * x_hat)) / sqrt(var + eps), both means over all rows of all ranks.",
        ),
    ),
)
