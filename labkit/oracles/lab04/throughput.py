"""Lab 04: the hints on a layer on the roofline. What is true of it, and the mistakes as figures: `roofline.py`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from labkit.exercises.lab01.function_calls import Call
from labkit.exercises.lab04.throughput import ARGUMENTS
from labkit.oracles.hints import not_written_yet
from labkit.oracles.lab01.function_calls import is_blank
from labkit.oracles.lab04.named_calls import call_by_names
from labkit.oracles.lab04.roofline import Layer, bound_rows, rate, solved
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance

ROUNDING = 1e-6
HIDDEN = ("in the sum", "in each sum", "at once", "in each product", "in each maximum")
"""Ways to let the optimizer's traffic overlap with the products."""
NO_SQUARES = ("n", "n*2", "(n^2)", "n^2")
"""What is written for n**2."""
SEVERAL_SQUARES = tuple(
    Layer(flops_square=flops, weights_square=weights, update_square=update)
    for mistakes in (("n",), ("n*2",), ("(n^2)", "n^2"))
    for flops, weights, update in itertools.product(("n**2", *mistakes), repeat=3)
    if (flops, weights, update).count("n**2") < 2
)
"""Two or three of the squares of a step, written in one wrong way."""


def true_result(run: CaseRun[Call]) -> dict[str, float]:
    work = {"compute_bound_rows": bound_rows, "tokens_per_second": lambda *arguments: rate(arguments)}
    return {"out": float(work[run.case.function](*run.case.arguments))}


def near(found: object, wanted: float) -> bool:
    return math.isclose(float(found), wanted, rel_tol=ROUNDING)


def rows(when: Callable[[float, int, float, int, float], object]) -> Callable[[CaseRun[Call]], object]:
    """A diagnosis of compute_bound_rows: `when` gets (got, n, FLOP per byte, bytes of a number, right).

    Its cases come first, so it may be shown whatever is wrong with the other function.
    """

    def diagnose(run: CaseRun[Call]) -> object:
        if run.case.function != "compute_bound_rows":
            return CANNOT_TELL
        n, peak, bandwidth, itemsize = run.case.arguments
        return when(float(run.got["out"]), n, peak / bandwidth, itemsize, run.expected["out"])

    return diagnose


def never_is_no_number(run: CaseRun[Call]) -> object:
    """Where no number of rows is enough, something else than math.inf came back: a number, -inf, NaN or None."""
    if run.case.function != "compute_bound_rows":
        return CANNOT_TELL
    found = run.got["out"]
    return math.isinf(run.expected["out"]) and (found is None or float(found) != math.inf)


def reckoned(*ways: Layer) -> Callable[[CaseRun[Call]], object]:
    """A diagnosis of tokens_per_second, while compute_bound_rows is right: one of these mistakes explains the value."""

    def diagnose(run: CaseRun[Call]) -> object:
        if run.case.function != "tokens_per_second":
            return False
        return any(near(run.got["out"], rate(run.case.arguments, how)) for how in ways)

    return diagnose


def how_far(run: CaseRun[Call]) -> str:
    got, want = float(run.got["out"]), run.expected["out"]
    if math.isinf(want):
        return "no number of rows is enough here"
    return f"{run.case.function} is {got / want:.4g} times what it should be"


THROUGHPUT = Oracle(
    id="04-throughput",
    expect=true_result,
    tolerance=Tolerance(rtol=ROUNDING),
    call=call_by_names(ARGUMENTS),
    fact=how_far,
    errors={"for ^": "In Python ^ is not a power: it works on the bits of whole numbers. Write n**2."},
    diagnose=(
        *not_written_yet(ARGUMENTS, is_blank),
        Hint(
            never_is_no_number,
            "A layer this narrow is never limited by arithmetic, however many rows it has: where the formula's "
            "denominator is zero or negative, return math.inf.",
        ),
        Hint(
            rows(lambda got, n, t, s, right: near(got, math.ceil(right)) or near(got, math.floor(right))),
            "The number was rounded. Return it as it comes out, a float.",
        ),
        Hint(
            rows(lambda got, n, t, s, right: near(got, solved(n, t, s, each=0)) or near(got, solved(n, t, s, each=1))),
            "Only part of the rows' bytes is counted. The product reads b rows of n numbers and writes b rows of n "
            "numbers, beside the n² weights.",
        ),
        Hint(
            rows(lambda got, n, t, s, right: near(got, max(solved(n, t, s, flops=1), 0) or math.inf)),
            "A multiply-add was counted as one operation: the product takes 2bn² FLOPs.",
        ),
        Hint(
            rows(lambda got, n, t, s, right: near(got, solved(n, t, s, flops=6))),
            "This exercise's rows are those of the forward product alone: 2bn² FLOPs, not 6bn².",
        ),
        Hint(
            rows(lambda got, n, t, s, right: near(got, solved(n, float(int(t)), s))),
            "The threshold was rounded. Divide with /, not with //.",
        ),
        Hint(
            rows(lambda got, n, t, s, right: any(fixed != s and near(got, solved(n, t, fixed)) for fixed in (1, 2, 4))),
            "The bytes of a number are fixed in your answer: itemsize says how many there are.",
        ),
        Hint(
            rows(lambda got, n, t, s, right: near(got, t) or near(got, t * s / 2)),
            "That is the threshold in FLOPs per byte. Write down FLOPs and bytes of the product with b rows, and solve "
            "FLOPs / bytes = threshold for b.",
        ),
        Hint(
            rows(lambda got, n, t, s, right: near(got, solved(n, 1 / t, s))),
            "The threshold is upside down: peak FLOP/s divided by bytes/s.",
        ),
        Hint(
            reckoned(*(Layer(optimizer=when) for when in HIDDEN)),
            "The optimizer's time was hidden behind the products. Arithmetic and traffic overlap only within a "
            "product: the optimizer starts when all gradients are there, so its time is added to theirs.",
        ),
        Hint(
            reckoned(Layer(joined=True)),
            "The micro-batches were counted as one product. Each is a product of its own and reads the weights again.",
        ),
        Hint(
            reckoned(Layer(products=1, flops=6)),
            "The step's 6bn² FLOPs are there, but the bytes of one product alone. Each of the three products moves its "
            "own bytes.",
        ),
        Hint(
            reckoned(Layer(products=1, moved=3), Layer(products=1, moved=3, optimizer="in the sum")),
            "The bytes of three products are there, but the FLOPs of one: a training step takes 6bn² FLOPs for each "
            "micro-batch, not 2bn².",
        ),
        Hint(
            reckoned(Layer(products=1)),
            "That is the forward pass alone: 2bn² FLOPs for 6bn². A training step has three products of the same size: "
            "forward, the gradient of the input, the gradient of the weights.",
        ),
        Hint(
            reckoned(Layer(times="backward as one")),
            "The backward pass has the FLOPs of two products in your answer, and the bytes of one. Each moves its own "
            "bytes, and for each the slower of its two times counts.",
        ),
        Hint(
            reckoned(Layer(products=2)),
            "The backward pass has two products: the gradient of the input and that of the weights.",
        ),
        Hint(
            reckoned(Layer(flops=6)),
            "6bn² FLOPs are those of all three products together. One product takes 2bn².",
        ),
        Hint(
            reckoned(Layer(flops=6, moved=3)),
            "The three products were counted twice: in FLOPs and bytes, and once more as a factor of the time.",
        ),
        Hint(
            reckoned(Layer(flops=1)),
            "A multiply-add was counted as one operation: a product takes 2bn² FLOPs.",
        ),
        Hint(
            reckoned(*(Layer(itemsize=fixed) for fixed in (1, 2, 4))),
            "The bytes of a number are fixed in your answer: itemsize says how many there are.",
        ),
        Hint(
            reckoned(Layer(texts_alone=True), Layer(texts_alone=True, weights_each="text")),
            "Texts were counted, not tokens: a layer has n_texts · length rows.",
        ),
        Hint(
            reckoned(Layer(rows_of="texts"), Layer(rows_of="length")),
            "The tokens are right, but the products' rows are not: a micro-batch has n_texts · length rows.",
        ),
        Hint(
            reckoned(Layer(counted="texts")),
            "Those are texts per second. Each text has `length` tokens.",
        ),
        Hint(
            reckoned(Layer(counted="steps")),
            "Those are steps per second. A step has n_accumulate · n_texts · length tokens.",
        ),
        Hint(
            reckoned(Layer(counted="seconds")),
            "Those are the seconds of a step. Divide its tokens by them.",
        ),
        Hint(
            reckoned(Layer(counted="one token")),
            "Those are seconds per token, upside down: tokens divided by seconds.",
        ),
        Hint(
            reckoned(Layer(weights_each="text"), Layer(weights_each="row")),
            "The weights were read once for each text or token. One product reads them once for the whole micro-batch, "
            "which is why batches help.",
        ),
        Hint(
            reckoned(Layer(optimizer="each"), Layer(optimizer="each product")),
            "The optimizer was counted once for each micro-batch or product. It runs once a step, after all of them.",
        ),
        Hint(
            reckoned(Layer(optimizer_factor="itemsize")),
            "optimizer_bytes are bytes already: do not multiply them by itemsize.",
        ),
        Hint(
            reckoned(*(Layer(update_square=written) for written in NO_SQUARES)),
            "optimizer_bytes are those of one weight, and the layer has n² of them. In Python that is n**2: n^2 works "
            "on the bits of n.",
        ),
        Hint(
            reckoned(Layer(optimizer_factor="peak")),
            "The optimizer's bytes were divided by the peak FLOP/s. It is limited by memory: divide by the bandwidth.",
        ),
        Hint(
            reckoned(Layer(optimizer_factor="fixed")),
            "The optimizer's 28 bytes are fixed in your answer: optimizer_bytes says how many there are for a weight.",
        ),
        Hint(
            reckoned(Layer(optimizer="never"), Layer(update_square="1")),
            "The optimizer is missing, or its bytes are those of one weight: once a step it moves optimizer_bytes for "
            "each of the n² weights.",
        ),
        Hint(
            reckoned(Layer(tokens_of="micro-batch")),
            "The time is that of all micro-batches, but the tokens are those of one.",
        ),
        Hint(
            reckoned(Layer(time_of="micro-batch")),
            "The tokens are those of all micro-batches, but the time of the products is that of one.",
        ),
        Hint(
            reckoned(Layer(times="sum")),
            "The two times were added. Arithmetic and memory traffic overlap, so the slower one sets the time of a "
            "product.",
        ),
        Hint(
            reckoned(
                Layer(bytes_count=False),
                Layer(weights_each="never"),
                *(Layer(weights_square=written) for written in NO_SQUARES),
            ),
            "The products' bytes are missing, or those of their n² weights: with few rows, reading the weights takes "
            "longer than the arithmetic. In Python n² is n**2: n^2 works on the bits of n.",
        ),
        Hint(
            reckoned(Layer(rows_square=True)),
            "A row has n numbers, not n²: a product moves 2bn of them, beside its n² weights.",
        ),
        Hint(
            reckoned(*SEVERAL_SQUARES),
            "n² is far too small in more than one place. A product has 2bn² FLOPs and n² weights, and the optimizer's "
            "bytes are for n² weights, too. In Python that is n**2: n^2 works on the bits of n.",
        ),
        Hint(
            reckoned(Layer(times="bytes")),
            "Where arithmetic should set the time, the bytes do: its time is missing, or far too short. A product of b "
            "rows takes 2bn² FLOPs.",
        ),
        Hint(
            reckoned(Layer(times="min")),
            "The shorter of the two times was taken. They overlap, so the product takes as long as the slower one.",
        ),
        Hint(
            reckoned(Layer(written=False)),
            "The bytes of b rows are missing: a product reads b rows and writes b rows, beside the weights.",
        ),
        Hint(
            reckoned(Layer(weights_alone=True)),
            "Only the weights' bytes are counted: the rows are read and written, too.",
        ),
        Hint(
            lambda run: run.got["out"] in (math.floor(run.expected["out"]), math.ceil(run.expected["out"])),
            "The number was rounded. Return it as it comes out, a float.",
        ),
    ),
)
