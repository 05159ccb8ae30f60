"""Lab 04: what a layer takes on the roofline, and what a student makes of it who reckons otherwise.

Products are counted by PyTorch's FLOP counter and by the sizes of tensors without storage; rows by bisection. No hint
stands here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch.utils.flop_counter import FlopCounterMode

DTYPES = {1: torch.int8, 2: torch.float16, 4: torch.float32, 8: torch.float64}


@dataclass(frozen=True)
class Layer:
    """How a step is reckoned. The defaults are right.

    texts_alone: rows and tokens are texts. rows_of: rows alone are "texts" or the "length" of one. products, flops,
    moved: how many of the three there are, how many FLOPs each takes for a multiply-add, how often its bytes move.
    itemsize: fixed at this many bytes. weights_each: "text" or "row" reads the weights again; "never" reads none, or
    one "column" of them. weights_alone: rows move no bytes. written: results count as bytes. bytes_count: bytes take
    time. times: what becomes of a product's two times: max, min, sum, or the bytes' alone; "backward as one": it moves
    the bytes of one product. joined: the micro-batches are one product.
    optimizer: "once", "each" micro-batch, "each product", "never"; "at once": while the products run; "in the sum" or
    "in each sum": FLOPs and bytes of the whole step, or of a micro-batch and the optimizer, are compared; "in each
    product" or "in each maximum": its bytes are those of each product, or its time is compared with both of each.
    optimizer_factor: its bytes, this many times; "row": those of n weights, "peak": as FLOPs, "fixed": always 28.
    tokens_of, time_of: whether they are those of the step or of one micro-batch. counted: "tokens", "texts" or "steps"
    a second, or the "seconds" of a step or of "one token".
    flops_square, weights_square, update_square: what stands for n**2 there: "n", "n*2", "1", "(n^2)", or "n^2" as
    Python takes it, which flips bits of all that the signs around it bind more closely. rows_square: rows have n**2
    numbers.
    """

    texts_alone: bool = False
    rows_of: str = "tokens"
    products: int = 3
    flops: int = 2
    moved: int = 1
    itemsize: int | None = None
    weights_each: str = "product"
    weights_alone: bool = False
    written: bool = True
    bytes_count: bool = True
    times: str = "max"
    joined: bool = False
    optimizer: str = "once"
    optimizer_factor: str = "one"
    tokens_of: str = "step"
    time_of: str = "step"
    counted: str = "tokens"
    flops_square: str = "n**2"
    weights_square: str = "n**2"
    update_square: str = "n**2"
    rows_square: bool = False


def squared(n: int, written: str) -> int:
    """The square of n as it is written; of a bare n^2, as if nothing stood around it."""
    return {"n**2": n**2, "n": n, "n*2": n * 2, "1": 1, "(n^2)": n ^ 2, "n^2": n ^ 2}[written]


@lru_cache(maxsize=1024)
def product_cost(rows: int, n: int, itemsize: int) -> tuple[int, int]:
    """FLOPs and bytes of a product of (rows, n) and (n, n) numbers."""
    x, weight = (torch.empty(size, n, dtype=DTYPES[itemsize], device="meta") for size in (rows, n))
    with FlopCounterMode(display=False) as counter:
        out = x @ weight
    return counter.get_total_flops(), x.nbytes + weight.nbytes + out.nbytes


def rate(arguments: tuple, how: Layer = Layer()) -> float:
    """Tokens per second, or what else is counted."""
    texts, length, n, n_accumulate, peak, bandwidth, itemsize, optimizer_bytes = arguments
    n_products = 1 if how.joined else n_accumulate
    flops, n_bytes = cost_of_a_product(how, texts * n_accumulate // n_products, length, n, how.itemsize or itemsize)
    factors = {"itemsize": itemsize, "row": 1 / n, "peak": bandwidth / peak, "fixed": 28 / optimizer_bytes}
    update_bytes = squared(n, how.update_square) * optimizer_bytes * factors.get(how.optimizer_factor, 1)
    if how.update_square == "n^2":
        update_bytes = (optimizer_bytes * n) ^ 2
    repeated = how.products * (n_products if how.time_of == "step" else 1)
    updates = {
        "each": n_accumulate,
        "in each sum": n_accumulate,
        "each product": repeated,
        **dict.fromkeys(("never", "in each product", "in each maximum"), 0),
    }.get(how.optimizer, 1)
    if how.optimizer == "in each product":
        n_bytes += update_bytes
    if how.optimizer == "in each maximum":
        n_bytes = max(n_bytes, update_bytes)
    if how.optimizer in ("in the sum", "in each sum"):
        seconds = max(repeated * flops / peak, (repeated * n_bytes + updates * update_bytes) / bandwidth)
    else:
        of_both = {
            "max": max,
            "min": min,
            "sum": lambda *both: sum(both),
            "bytes": lambda flops_s, bytes_s: bytes_s,
            "backward as one": lambda flops_s, bytes_s: (max(flops_s, bytes_s) + max(2 * flops_s, bytes_s)) / 3,
        }
        product_s = of_both[how.times](flops / peak, n_bytes / bandwidth)
        times = repeated * product_s, updates * update_bytes / bandwidth
        seconds = max(times) if how.optimizer == "at once" else sum(times)
    n_texts = texts * (n_accumulate if how.tokens_of == "step" else 1)
    tokens = n_texts if how.texts_alone else n_texts * length
    return {
        "tokens": tokens / seconds,
        "texts": n_texts / seconds,
        "steps": 1 / seconds,
        "seconds": seconds,
        "one token": seconds / tokens,
    }[how.counted]


def cost_of_a_product(how: Layer, texts: int, length: int, n: int, itemsize: int) -> tuple[float, float]:
    """FLOPs and bytes of one product as it is reckoned."""
    rows = {"tokens": texts * length, "texts": texts, "length": length}["texts" if how.texts_alone else how.rows_of]
    flops, n_bytes = product_cost(rows, n, itemsize)
    n_bytes += (
        ({"product": 1, "text": texts, "row": rows, "never": 0, "column": 1 / n}[how.weights_each] - 1)
        * n
        * n
        * itemsize
    )
    if how.weights_alone:
        n_bytes = n * n * itemsize
    if not how.written:
        n_bytes -= rows * n * itemsize
    flops *= squared(n, how.flops_square) / n**2
    n_bytes += (squared(n, how.weights_square) - n**2) * itemsize
    if how.flops_square == "n^2":
        flops = (2 * rows * n) ^ 2
    if how.weights_square == "n^2":
        n_bytes = (n ^ (2 + 2 * rows * n)) * itemsize
    if how.rows_square:
        n_bytes += 2 * rows * (n**2 - n) * itemsize
    return flops * how.flops / 2, n_bytes * how.moved * how.bytes_count


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


def solved(n: int, threshold: float, itemsize: int, flops: float = 2, weights: float = 1, each: float = 2) -> float:
    """The rows where flops·b·n² = threshold·itemsize·(weights·n² + each·b·n), which may be negative."""
    return threshold * itemsize * weights * n / (flops * n - each * threshold * itemsize)
