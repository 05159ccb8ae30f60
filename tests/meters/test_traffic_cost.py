"""A kernel under the traffic meter takes at most twice the CPU time that it takes without."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import interpreter, track_traffic
from tests.kernels.add import add
from tests.kernels.attention import attention
from tests.kernels.matmul import matmul
from tests.kernels.softmax import softmax, three_pass_softmax

interpreter.enable()

LINE, ROWS = torch.ones(8192), torch.ones(32, 781)
SQUARE, HEADS = torch.ones(64, 64), torch.ones(1, 64, 16)


def metered(run: Callable[[], object]) -> Callable[[], object]:
    def under_the_meter() -> None:
        with track_traffic():
            run()

    return under_the_meter


def cpu_s(run: Callable[[], object]) -> float:
    before_s = time.process_time()
    run()
    return time.process_time() - before_s


@pytest.mark.slow
@pytest.mark.parametrize(
    "run",
    [
        lambda: add(LINE, LINE),
        lambda: softmax(ROWS[:16]),
        lambda: three_pass_softmax(ROWS[:6]),
        lambda: matmul(SQUARE, SQUARE.t(), (32, 32, 16)),
        lambda: attention(HEADS, HEADS, HEADS, (16, 16)),
    ],
    ids=["add", "softmax", "three-passes", "matmul", "attention"],
)
def test_it_costs_less_than_the_kernel(run: Callable[[], object]) -> None:
    """The least of several turns of each, taken in turn: what else the machine does only adds to a measurement."""
    both = (run, metered(run))
    turns = [[cpu_s(one) for one in both] for _ in range(5)]
    without_s, with_s = (min(times) for times in zip(*turns))
    assert with_s <= 2 * without_s, f"{with_s / without_s:.2f} times"
