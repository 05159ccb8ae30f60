"""The text that a student reads, word for word: what a message says is part of what the course promises."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from labkit.check.html import as_html
from labkit.check.text import MAX_LINES, WIDTH, as_text
from labkit.spec import Budget, Run
from tests.exercises.small import DOUBLE, ORACLE, examined


def told(source: str, *args: object, **changes: object) -> str:
    text = as_text(examined(dedent(source).strip() + "\n", *args, **changes))
    assert len(text.splitlines()) <= MAX_LINES
    assert max(map(len, text.splitlines())) <= WIDTH
    return text


def same_text(text: str, expected: str) -> None:
    assert text == dedent(expected).strip("\n")


def test_it_passes() -> None:
    same_text(told("double = lambda x: x * 2"), "✓ 90-double: all 2 cases pass, 2 points.")


def test_the_input_row_may_show_what_came_back() -> None:
    oracle = replace(
        ORACLE, show=lambda case, tree, got, index: f"x = {tree['x'][index]:g}, yours {got['out'][index]:g}"
    )
    assert "  input     x = 2, yours 6\n" in told("double = lambda x: x * torch.tensor([2.0, 3.0, 4.0])", oracle)


def test_an_input_row_that_cannot_be_made_is_left_out() -> None:
    text = told("double = lambda x: x * 3", replace(ORACLE, show=lambda case, tree, got, index: got["another name"]))
    assert "input" not in text
    assert "expected  2" in text


def test_it_passes_with_one_case_one_point_and_a_budget() -> None:
    oracle = replace(ORACLE, budgets=(Budget("dispatches", 4, "Use one operation.", unit="operations"),))

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


def test_it_changes_its_input() -> None:
    same_text(
        told("double = lambda x: x.mul_(2)"),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          problem   the input `x` was changed in place
          hint      Work on a copy. Operations whose name ends in an underscore, `+=` and assignments to
                    a slice write into the tensor itself, and `.float()` or `.to(...)` returns the same
                    tensor when there is nothing to convert.
        """,
    )


def test_it_raises() -> None:
    source = """
        def half(x):
            return x / number_of_halves

        def double(x):
            return half(x) * 4
    """
    same_text(
        told(source),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          problem   NameError: name 'number_of_halves' is not defined
          at        line 2: return x / number_of_halves
        """,
    )


def test_it_raises_deep_in_a_library() -> None:
    source = """
        def double(x):
            layer = torch.nn.Linear(7, 1)
            return layer(x)
    """
    same_text(
        told(source),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          problem   RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 7x1)
          at        line 3: return layer(x)
        """,
    )


def test_its_signature_is_another() -> None:
    text = told("def double(x, y):\n    return x * y")
    assert "  problem   TypeError: double() missing 1 required positional argument: 'y'" in text
    assert "labkit" not in text


def test_it_leaves_the_process() -> None:
    text = told("def double(x):\n    raise SystemExit(3)")
    assert "  problem   SystemExit: 3\n  at        line 2: raise SystemExit(3)" in text


def test_it_never_returns() -> None:
    same_text(
        told("def double(x):\n    while True: pass", run=Run(wall_s=0.3)),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          problem   it did not finish within 0.3 s of wall time
          at        line 2: while True: pass
          hint      Look for a loop that never ends, or for work that grows too fast with the size of
                    the input.
        """,
    )


def test_it_calls_what_is_forbidden() -> None:
    same_text(
        told("double = lambda x: torch.mul(x, 2)", forbids=("torch.mul",)),
        """
        ✗ 90-double: not right yet.
          problem   `torch.mul` does the whole job: this exercise is about writing it yourself
          at        line 1: double = lambda x: torch.mul(x, 2)
        """,
    )


def test_it_is_missing() -> None:
    same_text(
        told("def my_double(x):\n    return x * 2"),
        """
        ✗ 90-double: not right yet.
          problem   there is no `double`: was it renamed, or did its cell fail?
          hint      Keep the names of the functions as they were given: the check finds your answer by
                    them.
        """,
    )


def test_it_is_no_function() -> None:
    text = told("double = 2")
    assert "  problem   `double` should be a function or a class, but it is of type int" in text


def test_it_is_over_budget() -> None:
    oracle = replace(ORACLE, budgets=(Budget("peak_bytes", 3000, "Do not keep copies of the input."),))

    def drive(ans, case, tree, stage):
        out = ans.double(tree["x"])
        stage.measured["peak_bytes"] = 2**21
        return {"out": out}

    same_text(
        told("double = lambda x: x * 2", oracle, drive=drive),
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          case      n_rows=2, n_cols=3
          problem   over budget: peak bytes
          measured  2,097,152 bytes (2.0 MiB)
          budget    3,000 bytes (2.9 KiB)
          hint      Do not keep copies of the input.
        """,
    )


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0.25, "◐ 90-double: all 2 cases pass, but there is more to gain: 0.5 of 2 points."),
        (0.0, "✗ 90-double: all 2 cases pass, but there is more to gain: 0 of 2 points."),
        (float("nan"), "✗ 90-double: all 2 cases pass, but there is more to gain: 0 of 2 points."),
        (7.0, "✓ 90-double: all 2 cases pass, 2 points."),
    ],
)
def test_a_score(score: float, expected: str) -> None:
    same_text(told("double = lambda x: x * 2", replace(ORACLE, score=lambda runs: score)), expected)


def test_a_property_over_all_runs() -> None:
    oracle = replace(ORACLE, judge_all=(lambda runs: "the runs are too much alike",))
    same_text(
        told("double = lambda x: x * 2", oracle),
        """
        ✗ 90-double: not right yet.
          problem   the runs are too much alike
        """,
    )


def test_a_long_text_is_cut_where_one_sees_it() -> None:
    lines = told("def double(x):\n    raise ValueError('a word ' * 50)").splitlines()
    assert lines[2].startswith("  problem   ValueError: a word a word")
    assert lines[3].endswith(" ...")
    assert lines[4] == "  at        line 2: raise ValueError('a word ' * 50)"


def test_a_repr_cannot_inject_html_or_an_address() -> None:
    source = """
        class Evil:
            def __repr__(self):
                return "<script>alert('hi')</script> at 0x7f1234"

        double = lambda x: Evil()
    """
    verdict = examined(dedent(source))
    html = as_html(verdict)
    assert "<script>" not in html
    assert "&lt;script&gt;alert(&#x27;hi&#x27;)&lt;/script&gt;" in html
    assert "0x7f" not in html + as_text(verdict)


def test_what_may_be_read_of_a_hidden_case() -> None:
    text = as_text(examined("double = lambda x: x ** 2").redacted())
    same_text(
        text,
        """
        ✗ 90-double: none of the 2 cases passes; this is the first.
          hint      This is the square: `**` is the power, `*` the product.
        """,
    )


def test_the_box_shows_what_was_used_whether_it_passes_or_not() -> None:
    budgets = (Budget("peak_bytes", 3000, "Do not keep copies."), Budget("dispatches", 4, "Less.", unit="operations"))
    oracle = replace(ORACLE, budgets=budgets)

    def drive(ans, case, tree, stage):
        with stage.meter("ops"), stage.meter("memory"):
            return {"out": ans.double(tree["x"])}

    right = as_html(examined("double = lambda x: x * 2", oracle, drive=drive))
    assert ">used</th>" in right and "KiB (peak); 1 of 4 operations</td>" in right
    wrong = as_html(examined("double = lambda x: x * 3", oracle, drive=drive))
    assert "wrong value" in wrong and ">used</th>" in wrong and "1 of 4 operations</td>" in wrong
    wasteful = as_html(examined("double = lambda x: x + x - x + x - x + x", oracle, drive=drive))
    # The budget that is not kept has rows of its own, with the case.
    assert "over budget: dispatches" in wasteful and "5 of 4 operations" not in wasteful
    assert ">used</th>" in wasteful and "KiB (peak)</td>" in wasteful
