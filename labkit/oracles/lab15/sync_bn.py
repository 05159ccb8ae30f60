"""Lab 15: what is true of batch normalization over all ranks: PyTorch's on all rows, for one collective each way."""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.exercises.lab15.sync_bn import EPS, MOMENTUM
from labkit.oracles.hints import any_of
from labkit.oracles.lab15.sync_bn_mistakes import (
    LARGE_MEAN,
    about_the_means,
    all_rows,
    another_divisor,
    as_if_constant,
    averaged,
    by_ranks,
    by_squares,
    each,
    eps_outside,
    mean,
    no_bias,
    only_wrong,
    out_is,
    own_rows_only,
    summed,
    unmoved_without_rows,
    values_of,
    var,
    weighed,
)
from labkit.oracles.lab15.sync_bn_values import close, one_process
from labkit.spec import Budget, Hint, Observation, Oracle


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
