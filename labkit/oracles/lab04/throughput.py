"""Lab 04: what is true of a layer on the roofline, and what the usual mistakes make of it.

Products are counted by PyTorch's FLOP counter and by the sizes of tensors without storage; rows by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from labkit.exercises.lab01.function_calls import Call
from labkit.exercises.lab04.throughput import THROUGHPUT_FUNCTIONS
from labkit.oracles.hints import not_written_yet
from labkit.oracles.lab01.function_calls import call_of, is_blank
from labkit.spec import CaseRun, Hint, Oracle, Tolerance

ROUNDING = 1e-6
DTYPES = {1: torch.int8, 2: torch.float16, 4: torch.float32, 8: torch.float64}


@dataclass(frozen=True)
class Layer:
    """How a step is reckoned. The defaults are right.

    texts_alone: rows are texts, not tokens. products: how many of the three. weights_a_text: each text reads the
    weights again. optimizer: how often it runs in a step. weights_alone: rows move no bytes. add: times are added where
    the larger counts. written: results count as bytes. bytes_count: bytes take time. tokens_of, time_of: whether they
    are those of the step or of one micro-batch.
    """

    texts_alone: bool = False
    products: int = 3
    weights_a_text: bool = False
    optimizer: str = "once"
    weights_alone: bool = False
    add: bool = False
    written: bool = True
    bytes_count: bool = True
    tokens_of: str = "step"
    time_of: str = "step"


def product_cost(rows: int, n: int, itemsize: int) -> tuple[int, int]:
    """FLOPs and bytes of a product of (rows, n) and (n, n) numbers."""
    x, weight = (torch.empty(size, n, dtype=DTYPES[itemsize], device="meta") for size in (rows, n))
    with FlopCounterMode(display=False) as counter:
        out = x @ weight
    return counter.get_total_flops(), x.nbytes + weight.nbytes + out.nbytes


def rate(arguments: tuple, how: Layer = Layer()) -> float:
    """Tokens per second."""
    texts, length, n, n_accumulate, peak, bandwidth, itemsize, optimizer_bytes = arguments
    rows = texts if how.texts_alone else texts * length
    flops, n_bytes = product_cost(rows, n, itemsize)
    if how.weights_a_text:
        n_bytes += (texts - 1) * n * n * itemsize
    if how.weights_alone:
        n_bytes = n * n * itemsize
    if not how.written:
        n_bytes -= rows * n * itemsize
    times = flops / peak, n_bytes / bandwidth * how.bytes_count
    product_s = sum(times) if how.add else max(times)
    update_s = n * n * optimizer_bytes / bandwidth
    updates = {"once": 1, "each": n_accumulate, "never": 0}[how.optimizer]
    micro_batches = n_accumulate if how.time_of == "step" else 1
    seconds = micro_batches * how.products * product_s + updates * update_s
    return (n_accumulate if how.tokens_of == "step" else 1) * rows / seconds


def bound_rows(n: int, peak: float, bandwidth: float, itemsize: int) -> float:
    """Rows at which both times of the forward product are equal; inf where bytes always take longer."""

    def busy(rows: float) -> bool:
        return 2 * rows * n * n / peak >= itemsize * (n * n + 2 * rows * n) / bandwidth

    if not busy(1e30):
        return math.inf
    low, high = 0.0, 1e30
    while high - low > 1e-9 * high:
        middle = (low + high) / 2 if high < 2 * low + 1 else math.sqrt(max(low, 1e-3) * high)
        low, high = (low, middle) if busy(middle) else (middle, high)
    return high


def true_result(run: CaseRun[Call]) -> dict[str, float]:
    work = {"compute_bound_rows": bound_rows, "tokens_per_second": lambda *arguments: rate(arguments)}
    return {"out": float(work[run.case.function](*run.case.arguments))}


def near(found: object, wanted: float) -> bool:
    return math.isclose(float(found), wanted, rel_tol=ROUNDING)


def rows(when: Callable[[float, int, float, int, float], object]) -> Callable[[CaseRun[Call]], object]:
    """A diagnosis of compute_bound_rows: `when` gets (got, n, FLOP per byte, bytes of a number, right)."""

    def diagnose(run: CaseRun[Call]) -> object:
        if run.case.function != "compute_bound_rows":
            return False
        n, peak, bandwidth, itemsize = run.case.arguments
        return when(float(run.got["out"]), n, peak / bandwidth, itemsize, run.expected["out"])

    return diagnose


def reckoned(*ways: Layer) -> Callable[[CaseRun[Call]], object]:
    """A diagnosis of tokens_per_second: one of these mistakes explains the value."""

    def diagnose(run: CaseRun[Call]) -> object:
        if run.case.function != "tokens_per_second":
            return False
        return any(near(run.got["out"], rate(run.case.arguments, how)) for how in ways)

    return diagnose


def solved(n: int, threshold: float, itemsize: int, flops: float = 2, weights: float = 1, each: float = 2) -> float:
    """The rows where flops·b·n² = threshold·itemsize·(weights·n² + each·b·n), which may be negative."""
    return threshold * itemsize * weights * n / (flops * n - each * threshold * itemsize)


def how_far(run: CaseRun[Call]) -> str:
    got, want = float(run.got["out"]), run.expected["out"]
    return f"{run.case.function} is {got / want:.4g} times what it should be"


THROUGHPUT = Oracle(
    id="04-throughput",
    expect=true_result,
    tolerance=Tolerance(rtol=ROUNDING),
    call=call_of,
    fact=how_far,
    diagnose=(
        *not_written_yet(THROUGHPUT_FUNCTIONS, is_blank),
        Hint(
            rows(lambda got, n, t, s, right: math.isinf(right) and (got < 0 or got in (0.0, 1.0))),
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
            rows(lambda got, n, t, s, right: (s != 2 and near(got, solved(n, t, 2))) or (s == 2 and near(got, right))),
            "The bytes of a number are fixed in your answer: itemsize says how many there are.",
        ),
        Hint(
            rows(lambda got, n, t, s, right: near(got, t) or near(got, t * s / 2)),
            "That is the threshold in FLOPs per byte. Write down FLOPs and bytes of the product with b rows, and solve "
            "FLOPs / bytes = threshold for b.",
        ),
        Hint(
            reckoned(Layer(products=1)),
            "That is the forward pass alone. A training step has three products of the same size: forward, the "
            "gradient of the input, the gradient of the weights.",
        ),
        Hint(
            reckoned(Layer(products=2)),
            "The backward pass has two products: the gradient of the input and that of the weights.",
        ),
        Hint(
            reckoned(Layer(texts_alone=True), Layer(texts_alone=True, weights_a_text=True)),
            "Texts were counted, not tokens: a layer has n_texts · length rows.",
        ),
        Hint(
            reckoned(Layer(weights_a_text=True)),
            "The weights were read once for each text. One product reads them once for the whole micro-batch, which is "
            "why batches help.",
        ),
        Hint(
            reckoned(Layer(optimizer="each")),
            "The optimizer was counted for each micro-batch. It runs once a step.",
        ),
        Hint(
            reckoned(Layer(optimizer="never")),
            "The optimizer is missing: once a step it moves optimizer_bytes for each of the n² weights.",
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
            reckoned(Layer(add=True)),
            "The two times were added. Arithmetic and memory traffic overlap, so the slower one sets the time of a "
            "product.",
        ),
        Hint(
            reckoned(Layer(bytes_count=False)),
            "The products' bytes are missing: with few rows, reading the weights takes longer than the arithmetic.",
        ),
        Hint(
            reckoned(Layer(written=False)),
            "What a product writes is missing from its bytes.",
        ),
        Hint(
            reckoned(Layer(weights_alone=True)),
            "Only the weights' bytes are counted: the rows are read and written, too.",
        ),
    ),
)
