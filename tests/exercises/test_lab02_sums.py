"""What lab 02's second half promises beyond the answers in tests/wrong and tests/right."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from labkit import exercises
from labkit.exercises.lab02.merge_smallest import WRITTEN, Merging
from labkit.exercises.lab02.stochastic_rounding import Draws
from labkit.exercises.lab02.sums import Numbers
from labkit.observe import make_inputs
from labkit.oracles.lab02 import added, merge_smallest, rounding_faults


def written(kind: str) -> list[float]:
    case = Merging(len(WRITTEN[kind]), kind)
    return make_inputs(exercises.find("02-merge-smallest"), case, 0)["values"].tolist()


def test_one_written_list_tells_every_order_of_adding_apart() -> None:
    values = written("orders")
    ways = (
        merge_smallest.merge_by_definition(values),
        merge_smallest.from_the_front(values),
        merge_smallest.from_the_back(values),
        merge_smallest.from_the_back([-v for v in values]) * -1,
        list(itertools.accumulate(values))[-1],
    )
    assert len(set(ways)) == len(ways)


def test_the_exact_sum_and_a_missing_heapify_are_found_on_the_other_written_list_only() -> None:
    for kind, in_other_bits in (("orders", False), ("heaps", True)):
        values = written(kind)
        right = merge_smallest.merge_by_definition(values)
        assert (math.fsum(values) != right) == in_other_bits
        assert all((out != right) == in_other_bits for out in merge_smallest.without_heapify(values))
    assert math.fsum(values) not in merge_smallest.without_heapify(values)


def test_adding_level_by_level_is_found_on_a_written_list() -> None:
    values = written("levels")
    assert merge_smallest.merge_by_definition(values) not in merge_smallest.level_by_level(values)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_figures_of_the_text_a_thousand_hundredths(dtype: str) -> None:
    x = make_inputs(exercises.find("02-sums"), Numbers("constant", 1000, dtype, 0.01), 0)["x"]
    assert added.in_order(x).item() == {"float16": 9.953125, "bfloat16": 4.0}[dtype]


def test_bfloat16_neighbours_enclose_every_float32() -> None:
    x = torch.randint(0, 255 << 23, (20_000,), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    x = torch.cat([x.view(torch.float32), -x.view(torch.float32)])
    below, above = rounding_faults.neighbours(x)
    assert ((below <= x) & (x <= above)).all()
    exact = x.bfloat16().double() == x.double()
    assert torch.equal(below == above, exact)


def test_an_unbiased_rounding_stays_within_the_bound() -> None:
    """The bound is Hoeffding's for a chance of 1e-12 a value, so that 1e3 values fail once in 1e9 checks."""
    bound = math.sqrt(math.log(2 / rounding_faults.FAILURE_PROBABILITY) / (2 * Draws().n_copies * Draws().n_seeds))
    assert 0.01 < bound < 0.1
