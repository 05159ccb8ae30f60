"""The figures of lab 02: drawn from the function that is handed in, labelled, and nothing runs off the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from matplotlib.figure import Figure

from labkit import figures
from labkit.figures.canvas import OTHER
from labkit.formats import FloatFormat
from tests.exercises.harness import answers_in, solution_of
from tests.figures.on_page import assert_every_text_is_on_the_page

FIGURES: dict[str, tuple[tuple[str, ...], Callable[[dict], Figure]]] = {
    "number_line": (("02-decode",), lambda ans: figures.number_line(ans["decode"])),
    "bit_fields": (("02-decode", "02-encode"), lambda ans: figures.bit_fields(0.1, ans["encode"], ans["decode"])),
    "quantization_error": (
        ("02-int8-quantize",),
        lambda ans: figures.quantization_error(ans["quantize_int8"], ans["dequantize_int8"]),
    ),
    "rounding_to_even": ((), lambda ans: figures.rounding_to_even()),
    "orders_of_adding": ((), lambda ans: figures.orders_of_adding(8)),
    "orders_of_adding in blocks": ((), lambda ans: figures.orders_of_adding(12, block=4)),
    "stalling_sum": (("02-sums",), lambda ans: figures.stalling_sum(ans["naive_sum"])),
    "error_against_n": (
        ("02-sums",),
        lambda ans: figures.error_against_n({name.removesuffix("_sum"): ans[name] for name in SUMS}),
    ),
    "merging_cost": (("02-merge-smallest",), lambda ans: figures.merging_cost(ans["merge_smallest"])),
    "tiny_updates": (("02-stochastic-rounding",), lambda ans: figures.tiny_updates(ans["stochastic_round"])),
}
SUMS = ("naive_sum", "sorted_sum", "pairwise_sum", "neumaier_sum")
pytestmark = pytest.mark.slow


def drawn(name: str, **instead: Callable) -> Figure:
    exercise_ids, draw = FIGURES[name]
    answers: dict = {}
    for exercise_id in exercise_ids:
        answers |= answers_in(exercise_id, solution_of(exercise_id))
    return draw({**answers, **instead})


@pytest.mark.parametrize("name", FIGURES)
def test_it_has_something_on_it_and_every_text_is_on_the_page(name: str) -> None:
    figure = drawn(name)
    assert figure.axes and any(axes.lines or axes.patches or axes.collections for axes in figure.axes)
    assert_every_text_is_on_the_page(figure)


def test_no_table_of_all_numbers_of_32_bits_is_asked_for() -> None:
    """An answer may search a table of all values of a format: of fp32's it would take 16 GiB."""
    asked = []
    encode = answers_in("02-encode", solution_of("02-encode"))["encode"]

    def noting(x: torch.Tensor, fmt: FloatFormat) -> torch.Tensor:
        asked.append(fmt.name)
        return encode(x, fmt)

    rows = [text.get_text() for text in drawn("bit_fields", encode=noting).axes[0].texts]
    assert asked == ["tf32", "bf16", "fp16", "e5m2", "e4m3fn"] and "fp32" in rows


def test_it_shows_the_students_own_function_and_not_a_right_one() -> None:
    def stuck(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros((), dtype=x.dtype)

    right, wrong = (figure.axes[0].lines for figure in (drawn("stalling_sum"), drawn("stalling_sum", naive_sum=stuck)))
    assert any(not (a.get_ydata() == b.get_ydata()).all() for a, b in zip(right, wrong, strict=True))


def blank(x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError("Write your answer here.")


def test_a_sum_that_is_not_written_is_left_out_of_the_errors() -> None:
    names = [line.get_label() for line in drawn("error_against_n", sorted_sum=blank, neumaier_sum=blank).axes[0].lines]
    assert {"naive", "pairwise"} <= set(names) and not {"sorted", "neumaier"} & set(names)
    nothing = drawn("error_against_n", **dict.fromkeys(SUMS, blank))
    assert "is still blank" in nothing.axes[0].texts[0].get_text().replace("\n", " ")


def test_the_path_of_the_first_term_has_as_many_dots_as_the_title_says() -> None:
    for block, in_a_row, other in ((None, 11, 3), (4, 11, 5)):
        left, right = figures.orders_of_adding(12, block).axes
        for axes, n in ((left, in_a_row), (right, other)):
            assert f"rounded {n} times" in axes.get_title()
            assert sum(line.get_marker() == "o" and line.get_color() == OTHER for line in axes.lines) == n
