"""Lab 01: what the usual mistakes make of a run's FLOPs and days; the hints of `compute_days` ask for it.

What a right answer is, and what is said of a wrong one, is not decided here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.exercises.lab01.function_calls import Call
from labkit.oracles.lab01.training_flops import attention_flops, head_flops, iteration_flops, layer_flops
from labkit.spec import CaseRun

WITHIN = 1e-6
"""For rounding alone: every amount follows exactly from the arguments."""
Term = float | Callable[[int, int, int, int], float]


def near(found: float, wanted: float) -> bool:
    return math.isclose(found, wanted, rel_tol=WITHIN)


def flops_are(*terms: Callable[..., float]) -> Callable:
    """A diagnosis of flops_per_iteration: what came back is what one of the terms gives for the arguments."""
    return lambda run: (
        run.case.function == "flops_per_iteration"
        and any(near(float(run.got["out"]), term(*run.case.arguments)) for term in terms)
    )


def off_by(function: str, *factors: Callable[..., float] | float) -> Callable:
    """A diagnosis: what came back is the right amount times one of the factors, which may depend on the arguments."""

    def diagnose(run: CaseRun[Call]) -> bool:
        if run.case.function != function:
            return False
        right, found = run.expected["out"], float(run.got["out"])
        return any(near(found, right * (f(*run.case.arguments) if callable(f) else f)) for f in factors)

    return diagnose


def half(*arguments) -> float:
    return iteration_flops(*arguments) / 2


def other_recomputation(batch, seq, n_layers, hidden, vocab, recompute) -> float:
    return iteration_flops(batch, seq, n_layers, hidden, vocab, not recompute)


def without_head(batch, seq, n_layers, hidden, vocab, recompute) -> float:
    return iteration_flops(batch, seq, n_layers, hidden, vocab, recompute) - head_flops(batch, seq, hidden, vocab)


def head_times(n_forwards: int) -> Callable[..., float]:
    """With the output layer counted as this many of its forward passes, of which it takes three."""
    return lambda batch, seq, n_layers, hidden, vocab, recompute: (
        iteration_flops(batch, seq, n_layers, hidden, vocab, recompute)
        + (n_forwards / 3 - 1) * head_flops(batch, seq, hidden, vocab)
    )


def head_in_each_layer(batch, seq, n_layers, hidden, vocab, recompute) -> float:
    right = iteration_flops(batch, seq, n_layers, hidden, vocab, recompute)
    return right + (n_layers - 1) * head_flops(batch, seq, hidden, vocab)


def three_quarters_of_all(batch, seq, n_layers, hidden, vocab, recompute) -> float:
    return math.nan if recompute else 0.75 * iteration_flops(batch, seq, n_layers, hidden, vocab, True)


def two_thirds_of_the_layers(batch, seq, n_layers, hidden, vocab, recompute) -> float:
    head = head_flops(batch, seq, hidden, vocab)
    again = iteration_flops(batch, seq, n_layers, hidden, vocab, True) - head
    return math.nan if recompute else 2 / 3 * again + head


def attention_not_scaled(batch, seq, n_layers, hidden, vocab, recompute) -> float:
    """3/4 of F's first term, and all of the attention's."""
    again = n_layers * attention_flops(batch, seq, hidden, False)
    return math.nan if recompute else iteration_flops(batch, seq, n_layers, hidden, vocab, False) + again


def attention_not_recomputed(batch, seq, n_layers, hidden, vocab, recompute) -> float:
    again = n_layers * attention_flops(batch, seq, hidden, False)
    return iteration_flops(batch, seq, n_layers, hidden, vocab, True) - again if recompute else math.nan


def with_attention(share: float) -> Callable[..., float]:
    """With this share of the attention's two products."""

    def flops(batch, seq, n_layers, hidden, vocab, recompute) -> float:
        again = attention_flops(batch, seq, hidden, False) if recompute else 0
        products = n_layers * (attention_flops(batch, seq, hidden, True) + again)
        return iteration_flops(batch, seq, n_layers, hidden, vocab, recompute) - (1 - share) * products

    return flops


def forward_only(batch, seq, n_layers, hidden, vocab, recompute) -> float:
    return n_layers * layer_flops(batch, seq, hidden, False) + head_flops(batch, seq, hidden, vocab) / 3


def of_one_layer(batch, seq, n_layers, *others) -> float:
    return iteration_flops(batch, seq, 1, *others)


def of_one_sequence(batch, *others) -> float:
    return iteration_flops(batch, *others) / batch


def with_terms(dense: Term = 1, attention: Term = 1, head: Term = 1) -> Callable[..., float]:
    """With the products with a layer's weights, the attention's two and the output layer's times these.

    A factor may depend on (batch, seq, n_layers, hidden).
    """

    def flops(batch, seq, n_layers, hidden, vocab, recompute) -> float:
        all_of_head = head_flops(batch, seq, hidden, vocab)
        layers = iteration_flops(batch, seq, n_layers, hidden, vocab, recompute) - all_of_head
        again = attention_flops(batch, seq, hidden, False) if recompute else 0
        products = n_layers * (attention_flops(batch, seq, hidden, True) + again)
        terms = zip((layers - products, products, all_of_head), (dense, attention, head))
        return sum(term * (by(batch, seq, n_layers, hidden) if callable(by) else by) for term, by in terms)

    return flops


def by_hidden(power: int) -> Term:
    return lambda batch, seq, n_layers, hidden: hidden**power


def counted_in_forwards(of_layers: tuple[int, int], of_head: int) -> Callable[..., float]:
    """With a layer and the output layer as so many forward passes; of_layers: without recomputation, and with it."""

    def flops(batch, seq, n_layers, hidden, vocab, recompute) -> float:
        layers = n_layers * layer_flops(batch, seq, hidden, False)
        return of_layers[recompute] * layers + of_head / 3 * head_flops(batch, seq, hidden, vocab)

    return flops


def forward_alone(n_params, n_tokens, n_gpus, flops_per_gpu, recompute) -> float:
    """2 FLOPs for a parameter and token, and with recomputation 6 in place of 8."""
    return 3 / 4 if recompute else 1 / 3


def is_rounded(found: float, right: float) -> bool:
    return found in (math.floor(right), math.ceil(right), *(round(right, digits) for digits in range(4)))
