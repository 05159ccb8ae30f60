"""The text that a student reads, word for word: what a message says is part of what the course promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labkit.spec import Budget
from tests.exercises.small import DOUBLE, ORACLE
from tests.exercises.told import same_text, told


def test_it_passes() -> None:
    same_text(told("double = lambda x: x * 2"), "✓ 90-double: all 2 cases pass, 2 points.")


def test_the_input_row_may_show_what_came_back() -> None:
    oracle = replace(ORACLE, show=lambda run, index: f"x = {run.tree['x'][index]:g}, yours {run.got['out'][index]:g}")
    assert "  input     x = 2, yours 6\n" in told("double = lambda x: x * torch.tensor([2.0, 3.0, 4.0])", oracle)


def test_an_input_row_that_cannot_be_made_is_left_out() -> None:
    text = told("double = lambda x: x * 3", replace(ORACLE, show=lambda run, index: run.got["another name"]))
    assert "input" not in text
    assert "expected  2" in text


def test_it_passes_with_one_case_one_point_and_a_budget() -> None:
    oracle = replace(ORACLE, budgets=(Budget("dispatches", 4, "Use one operation."),))

    def drive(ans, case, tree, stage):
        with stage.meter("ops"):
            return {"out": ans.double(tree["x"])}

    text = told("double = lambda x: x * 2", oracle, points=1, public=DOUBLE.public[:1], drive=drive)
    same_text(text, "✓ 90-double: its case passes, 1 point. Used: 1 of 4 operations.")


@pytest.mark.parametrize(
    "source",
    [
        "def double(x):\n    raise NotImplementedError('Write your answer here.')",
        "def double(x):\n    raise NotImplementedError",
        "double = None",
        "double = ...",
    ],
)
def test_it_is_not_answered(source: str) -> None:
    expected = "○ 90-double: not answered yet. Write your answer in the cell above, run it, then run this one."
    same_text(told(source), expected)


def test_the_line_of_the_stub_that_was_left_under_an_answer_is_shown() -> None:
    same_text(
        told("def double(x):\n    twice = 2 * x\n    raise NotImplementedError('Write your answer here.')"),
        """
        ○ 90-double: not answered yet. Write your answer in the cell above, run it, then run this one.
          at        line 3: raise NotImplementedError('Write your answer here.'); delete this line when
                    your answer is complete
        """,
    )


def test_a_wrong_value_that_is_diagnosed() -> None:
    same_text(
        told("double = lambda x: x ** 2"),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          input     x[0, 0] = 1
          problem   wrong value at [0, 0]; 5 of 6 values differ, the largest error is 24
          expected  2.0  (float32)
          got       1.0
          tolerance 1e-06 + 1e-05 x |expected|
          hint      This is the square: `**` is the power, `*` the product.
        """,
    )


def test_a_wrong_value_in_the_second_case_without_a_diagnosis() -> None:
    same_text(
        told("double = lambda x: x * 2 if len(x) == 2 else x * 2.0001"),
        """
        ✗ 90-double: 1 of 2 cases pass; this one does not.
          case      n_rows=1, n_cols=4
          input     x[0, 0] = 1
          problem   wrong value at [0, 0]; 4 of 4 values differ, the largest error is 0.0004
          expected  2.0  (float32)
          got       2.0000999
          tolerance 1e-06 + 1e-05 x |expected|
        """,
    )


def test_a_wrong_dtype() -> None:
    same_text(
        told("double = lambda x: x.double() * 2"),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          problem   wrong dtype
          expected  float32
          got       float64
          hint      The result should be float32: convert it at the end, or choose the dtype where it is
                    made.
        """,
    )


def test_a_wrong_shape() -> None:
    same_text(
        told("double = lambda x: (x * 2).sum(0)"),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          problem   wrong shape
          expected  (2, 3)
          got       (3,)
        """,
    )


def test_it_returns_nothing() -> None:
    same_text(
        told("def double(x):\n    x * 2"),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          problem   wrong type
          expected  a tensor of float32, shape (2, 3)
          got       None
          hint      The function returned None: is a `return` missing?
        """,
    )


def test_it_returns_a_numpy_array() -> None:
    same_text(
        told("double = lambda x: x.numpy()[:1] * 2"),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          problem   wrong type
          expected  a tensor of float32, shape (2, 3)
          got       numpy.ndarray: array([[2., 4., 6.]], dtype=float32)
          hint      Return plain PyTorch tensors and Python numbers.
        """,
    )


def test_it_returns_a_list_and_a_number() -> None:
    assert "  got       a list\n" in told("double = lambda x: [1.0, 2.0]") + "\n"
    assert "  got       a float (21.0)\n" in told("double = lambda x: float(x.sum())") + "\n"


@pytest.mark.parametrize(
    ("factor", "got", "hint"),
    [
        ("float('nan')", "nan", "NaN where a number belongs: look for 0/0, inf - inf, or an overflow on the way."),
        ("float('inf')", "inf", "Infinity where a number belongs: something overflowed on the way."),
    ],
)
def test_it_is_not_finite(factor: str, got: str, hint: str) -> None:
    same_text(
        told(f"double = lambda x: x * {factor}"),
        f"""
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          input     x[0, 0] = 1
          problem   wrong value at [0, 0]; 6 of 6 values differ
          expected  2.0  (float32)
          got       {got}
          tolerance 1e-06 + 1e-05 x |expected|
          hint      {hint}
        """,
    )
