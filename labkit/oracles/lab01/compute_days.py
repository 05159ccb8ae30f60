"""Lab 01: what is true of a training run's FLOPs, days, dollars and utilization.

The FLOPs of an iteration are counted by PyTorch (`training_flops`). The other three are unit conversions, checked
against the amounts that the answers must account for. What the usual mistakes look like: `compute_days_mistakes`.
"""

from __future__ import annotations

import math

from labkit.exercises.lab01.compute_days import COMPUTE_FUNCTIONS
from labkit.exercises.lab01.function_calls import Call
from labkit.oracles.hints import any_of, not_written_yet
from labkit.oracles.lab01.compute_days_mistakes import (
    WITHIN,
    attention_not_recomputed,
    attention_not_scaled,
    by_hidden,
    counted_in_forwards,
    flops_are,
    forward_alone,
    forward_only,
    half,
    head_in_each_layer,
    head_times,
    is_rounded,
    near,
    of_one_layer,
    of_one_sequence,
    off_by,
    other_recomputation,
    three_quarters_of_all,
    two_thirds_of_the_layers,
    with_attention,
    with_terms,
    without_head,
)
from labkit.oracles.lab01.function_calls import call_of, is_blank
from labkit.oracles.lab01.training_flops import iteration_flops
from labkit.spec import CaseRun, Hint, Oracle, Tolerance

HOUR_S, DAY_S = 3600, 86400


def true_estimate(run: CaseRun[Call]) -> dict[str, float]:
    case = run.case
    if case.function == "flops_per_iteration":
        return {"out": float(iteration_flops(*case.arguments))}
    if case.function == "training_days":
        n_params, n_tokens, n_gpus, flops_per_gpu, recompute = case.arguments
        return {"out": (8 if recompute else 6) * n_tokens * n_params / (n_gpus * flops_per_gpu) / DAY_S}
    if case.function == "training_dollars":
        return {"out": math.prod(case.arguments) * 24}
    n_params, n_tokens, gpu_hours, peak_flops = case.arguments
    return {"out": 6 * n_tokens * n_params / (gpu_hours * HOUR_S * peak_flops)}


COMPUTE_DAYS = Oracle(
    id="01-compute-days",
    expect=true_estimate,
    tolerance=Tolerance(rtol=WITHIN),
    call=call_of,
    diagnose=(
        *not_written_yet(COMPUTE_FUNCTIONS, is_blank),
        Hint(
            flops_are(half),
            "Half of the FLOPs: a multiply-add is two operations, so a product of (m, k) by (k, n) takes 2 m k n.",
        ),
        Hint(
            flops_are(other_recomputation),
            "With recomputation every layer runs forward twice and backward once, 1 + 1 + 2 = 4 forwards; without it "
            "1 + 2 = 3. The result is that of the other case.",
        ),
        Hint(
            flops_are(without_head),
            "The output layer is missing: hidden x vocab weights meet every token, 6 b s h V FLOPs. In a small model "
            "that is a third of the work.",
        ),
        Hint(
            flops_are(head_times(4), three_quarters_of_all),
            "Only the layers are recomputed. The output layer takes 6 b s h V FLOPs, forward and backward, with or "
            "without; the factor of 4/3 or 3/4 is not for it.",
        ),
        Hint(
            flops_are(head_times(1), head_times(2), head_in_each_layer),
            "The output layer is there once, and takes 6 b s h V FLOPs: 2 forward and 4 backward for each weight and "
            "token.",
        ),
        Hint(
            flops_are(two_thirds_of_the_layers),
            "With recomputation a layer takes 1 + 1 + 2 = 4 forwards, and without it 1 + 2 = 3. That is three "
            "quarters, not two thirds.",
        ),
        Hint(
            flops_are(attention_not_scaled, attention_not_recomputed),
            "Attention is recomputed too: without recomputation the factor 3/4 is for the first two terms of F.",
        ),
        Hint(
            flops_are(with_attention(0)),
            "The two products of the attention are missing, QK' and scores times V: 4 b s² h FLOPs a layer and forward "
            "pass.",
        ),
        Hint(
            flops_are(with_attention(1 / 2)),
            "Half of the attention is missing: it has two products, QK' and scores times V, each of 2 b s² h FLOPs; "
            "F counts the masked half as well.",
        ),
        Hint(
            flops_are(forward_only),
            "That is the forward pass alone. The backward pass takes twice as much: each product has two gradients.",
        ),
        Hint(
            flops_are(of_one_sequence),
            "That is one sequence: an iteration has batch of them.",
        ),
        Hint(
            flops_are(of_one_layer),
            "That is one layer, with the output layer: there are n_layers of the former.",
        ),
        Hint(
            flops_are(
                *(with_terms(dense=by) for by in (by_hidden(-1), by_hidden(1))),
                *(with_terms(attention=by) for by in (by_hidden(-1), by_hidden(1), lambda b, s, n, h: 1 / s)),
            ),
            "An exponent is off. A layer's forward pass is 24 b s h² + 4 b s² h: h is squared in the first term, s in "
            "the second.",
        ),
        Hint(
            flops_are(
                with_terms(attention=lambda b, s, n, h: 1 / b),
                *(with_terms(head=by) for by in (lambda b, s, n, h: 1 / b, lambda b, s, n, h: 1 / s)),
            ),
            "A factor is missing in one of the terms: every product is made for all batch sequences, and the output "
            "layer for each of their seq tokens.",
        ),
        Hint(
            flops_are(with_terms(attention=lambda b, s, n, h: 1 / n)),
            "n_layers multiplies both terms of F: put the sum in parentheses.",
        ),
        Hint(
            flops_are(*(with_terms(dense=by) for by in (1 / 2, 1 / 3, 2 / 3))),
            "The products with the weights of a layer are not all there. It has 12 h² weights, 4 in the attention and "
            "8 behind it, and each takes 2 FLOPs for a token: 24 b s h².",
        ),
        Hint(
            flops_are(
                *(counted_in_forwards(passes, 3) for passes in ((3, 5), (2, 3))),
                *(counted_in_forwards(passes, n) for passes, n in (((2, 3), 2), ((4, 5), 4))),
            ),
            "The backward pass takes twice as much as a forward pass, because each product has two gradients. So a "
            "layer takes 1 + 2 = 3 forwards, with recomputation 4, and the output layer 3.",
        ),
        Hint(
            off_by("flops_per_iteration", 1e-9, 1e-12, 1e-15),
            "Return FLOPs, not multiples of 10**9 or 10**12 of them.",
        ),
        Hint(
            off_by("training_days", 3 / 4, 4 / 3),
            "8TP and 6TP are mixed up: 6 FLOPs per parameter and token for forward (2) and backward (4), and 2 more "
            "where the forward pass is recomputed.",
        ),
        Hint(
            off_by("training_days", DAY_S, 24),
            "That is the time in seconds or in hours: a day has 86,400 seconds.",
        ),
        Hint(
            off_by("training_days", lambda n_params, n_tokens, n_gpus, *rest: n_gpus),
            "That is the time on one GPU: n_gpus of them share the work.",
        ),
        Hint(
            any_of(off_by("training_days", 1e-12, 1e12), off_by("mfu", 1e-12, 1e12)),
            "Rates are in FLOP/s already: no factor of 10**12 for TFLOP/s.",
        ),
        Hint(
            off_by("training_days", 1 / 3, 1 / 4, 1 / 6, 1 / 8),
            "A factor is missing: each token takes 6 FLOPs per parameter, or 8 with recomputation, not 1 or 2.",
        ),
        Hint(
            off_by("training_days", 60, 1 / 365),
            "A day has 24 x 60 x 60 = 86,400 seconds.",
        ),
        Hint(
            off_by(
                "training_days",
                lambda n_params, n_tokens, n_gpus, rate, recompute: n_gpus**2,
                lambda n_params, n_tokens, n_gpus, rate, recompute: rate**2,
            ),
            "The time is multiplied by n_gpus or by flops_per_gpu, and should be divided by both. Without parentheses "
            "a / b * c multiplies by c: write flops / (n_gpus * flops_per_gpu).",
        ),
        Hint(
            off_by("training_days", forward_alone),
            "A token takes 2 FLOPs per parameter forward and 4 backward: 6, or 8 where the forward pass is recomputed.",
        ),
        Hint(
            any_of(
                off_by("training_days", *(lambda *numbers, at=at: 1 / numbers[at] for at in (0, 1))),
                off_by("mfu", *(lambda *numbers, at=at: 1 / numbers[at] for at in (0, 1))),
            ),
            "Every token goes through every parameter: n_params times n_tokens, and 6 or 8 FLOPs for each pair.",
        ),
        Hint(
            off_by(
                "mfu",
                lambda n_params, n_tokens, gpu_hours, peak: (HOUR_S * peak) ** 2,
                lambda n_params, n_tokens, gpu_hours, peak: peak**2,
            ),
            "Without parentheses a / b * c multiplies by c. All of gpu_hours * 3600 * peak_flops divides.",
        ),
        Hint(
            off_by(
                "training_dollars",
                *(1 / 24, 1 / 24**2, HOUR_S),
                *(lambda days, n_gpus, price: 1 / n_gpus, lambda days, n_gpus, price: 1 / n_gpus**2),
                lambda days, n_gpus, price: 1 / price,
            ),
            "The price is per GPU and hour: days x 24 hours x n_gpus x dollars_per_gpu_hour.",
        ),
        Hint(
            off_by("mfu", 4 / 3),
            "8TP and 6TP are mixed up: MFU counts the *model's* FLOPs, 6 per parameter and token, whether or not "
            "something was recomputed. With the recomputation in, it is called HFU.",
        ),
        Hint(off_by("mfu", 100), "Return a fraction between 0 and 1, not a percentage."),
        Hint(
            off_by("mfu", 1 / 3, 1 / 6),
            "A factor is missing: each token takes 6 FLOPs per parameter, forward and backward.",
        ),
        Hint(
            off_by("mfu", HOUR_S, HOUR_S / 60, HOUR_S / DAY_S),
            "A GPU-hour has 3600 seconds, and peak_flops is per second.",
        ),
        Hint(
            lambda run: is_rounded(float(run.got["out"]), run.expected["out"]),
            "Return the number as it is, neither rounded nor cut off.",
        ),
        Hint(
            lambda run: run.case.function == "mfu" and near(float(run.got["out"]), 1 / run.expected["out"]),
            "Upside down: MFU is the FLOPs that the model needs, divided by those that the GPUs could have done.",
        ),
    ),
)
