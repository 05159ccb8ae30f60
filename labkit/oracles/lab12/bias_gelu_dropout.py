"""Lab 12: bias, GELU and dropout in one kernel: its properties, its budgets, and the hints.

Which elements are dropped is the answer's own.
"""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import SAFE, at_full_size, compiled, moved
from labkit.oracles.lab12.close import DOUT_HINT, dout_in_words, keeps_at_most, of_autograd
from labkit.oracles.lab12.dropout_mistakes import (
    approximate,
    bias_after,
    bias_elsewhere,
    dout_as_contiguous,
    dropped_before,
    dropped_not_stored,
    drops_y_too,
    dx_unscaled,
    end_not_stored,
    gradient_is_to_blame,
    lacks_y,
    one_term_of_the_slope,
    other_activation,
    other_mask,
    unscaled,
    y_scaled,
)
from labkit.oracles.lab12.dropout_properties import (
    follows_the_seed,
    gradients_are_right,
    mask_does_not_repeat,
    seeds_do_not_overlap,
    share_is_right,
    values_are_right,
)
from labkit.spec import Hint, Oracle

BIAS_GELU_DROPOUT = Oracle(
    id="12-bias-gelu-dropout",
    judge=(
        inputs_untouched,
        values_are_right,
        mask_does_not_repeat,
        share_is_right,
        follows_the_seed,
        seeds_do_not_overlap,
        gradients_are_right,
        keeps_at_most(
            lambda case: 0,
            "Keep no mask: the seed and an element's number give the same random number again in the backward pass.",
        ),
    ),
    budgets=(
        *SAFE,
        # Three times forward: x, y and the bias; backward: x, dout and the bias; dx once more for the bias's gradient.
        *moved(
            load=lambda run: 13 * run.case.n_bytes + run.case.copied_bytes,
            store=lambda run: 4 * run.case.n_bytes + run.case.copied_bytes + 8 * run.case.n_cols,
            atomic=lambda run: run.case.n_bytes,
            launches=5,
        ),
        *compiled(),
    ),
    full_size=at_full_size(most_programs=lambda run: run.case.n_rows * run.case.n_cols // 64),
    call=lambda run: (
        as_call("bias_gelu_dropout", *(run.tree[name] for name in ("x", "bias", "y")), p=run.case.p, seed=run.case.seed)
        + dout_in_words(run.case)
    ),
    unusable=of_autograd("the gradients of x, bias and y, and None for p and seed"),
    diagnose=(
        Hint(
            end_not_stored,
            "The last elements are never stored: there are too few programs for them. The grid counts blocks, rounded "
            "up: (triton.cdiv(n, BLOCK_SIZE),).",
        ),
        Hint(
            dropped_not_stored,
            "What is dropped is never stored. Every element has a result, and that of a dropped one is y: choose the "
            "value with tl.where, and let the mask of the store say only which lanes lie in the matrix.",
        ),
        Hint(drops_y_too, "y is added after the dropout, so that it is never dropped."),
        Hint(
            y_scaled,
            "y is divided by 1 - p as well. Divide what is kept of the activation alone, and add y as it is.",
        ),
        Hint(unscaled, "What is kept has to be divided by 1 - p, so that the mean stays what it was."),
        Hint(dropped_before, "The division by 1 - p comes after the activation, not before it."),
        Hint(bias_after, "The bias is added after the activation: it is gelu(x + bias), and not gelu(x) + bias."),
        Hint(lacks_y, "y is missing: the result is y plus what dropout leaves of the activation."),
        Hint(other_activation, "This is not the exact GELU. It is x / 2 * (1 + tl.erf(x / sqrt(2))), at x + bias."),
        Hint(approximate, "This is GELU by tanh. Use the exact one: x / 2 * (1 + tl.erf(x / sqrt(2)))."),
        Hint(
            bias_elsewhere,
            "The bias is not that of the element's column. With offs counted through the whole matrix, the column is "
            "offs % n_cols.",
        ),
        Hint(dout_as_contiguous, DOUT_HINT),
        Hint(
            other_mask,
            "The backward pass has another mask than the forward pass: take the same seed, and the same offset for an "
            "element, in both.",
        ),
        Hint(
            one_term_of_the_slope,
            "The derivative of gelu(a) = a * phi(a) has two terms, by the product rule: phi, and a times the "
            "derivative of phi, which is exp(-a * a / 2) / sqrt(2 * pi).",
        ),
        Hint(dx_unscaled, "dx lacks the factor 1 / (1 - p) that the forward pass has."),
        Hint(
            gradient_is_to_blame,
            "The forward pass is right, and a gradient is not. dx is dout times the derivative of gelu at x + bias, "
            "divided by 1 - p where it was kept; dbias is its sum over the rows, and dy is dout.",
        ),
    ),
)
