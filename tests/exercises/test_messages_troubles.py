"""The text that a student reads where there is no value to judge; and of budgets, rules, scores and hidden cases."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from labkit.check.html import as_html
from labkit.check.text import as_text
from labkit.spec import Budget, Run
from tests.exercises.small import ORACLE, examined
from tests.exercises.told import same_text, told


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


def test_it_raises_what_the_oracle_knows() -> None:
    oracle = replace(ORACLE, errors={"cannot be multiplied": "Multiply each number by 2: no matrix product is needed."})
    source = "def double(x):\n    return x @ x"
    assert "  hint      Multiply each number by 2: no matrix product is needed." in told(source, oracle)
    assert "hint" not in told("def double(x):\n    return half(x)", oracle)
    # That is no exception: the rule that is broken has words of its own.
    oracle = replace(ORACLE, errors={"does the whole job": "Not shown."})
    assert "hint" not in told("double = lambda x: torch.mul(x, 2)", oracle, forbids=("torch.mul",))


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


def test_points_are_cut_to_two_decimals() -> None:
    text = told("double = lambda x: x * 2", replace(ORACLE, score=lambda runs: 0.757958))
    assert "more to gain: 1.51 of 2 points." in text
    text = told("double = lambda x: x * 2", replace(ORACLE, score=lambda runs: 0.99999))
    assert "more to gain: 1.99 of 2 points." in text


@pytest.mark.parametrize(("score", "shown"), [(1.0, True), (0.5, True), (0.0, False)])
def test_what_an_answer_came_to_is_shown_where_it_earns_points(score: float, shown: bool) -> None:
    oracle = replace(ORACLE, score=lambda runs: score, earned=lambda runs: (("hours", f"{len(runs)} of them"),))
    assert ("  hours     2 of them" in told("double = lambda x: x * 2", oracle)) is shown


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
    assert lines[4].endswith(" ...")
    assert lines[5] == "  at        line 2: raise ValueError('a word ' * 50)"


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
    budgets = (Budget("peak_bytes", 3000, "Do not keep copies."), Budget("dispatches", 4, "Less."))
    oracle = replace(ORACLE, budgets=budgets)

    def drive(ans, case, tree, stage):
        with stage.meter("ops"), stage.meter("memory"):
            return {"out": ans.double(tree["x"])}

    examined("double = lambda x: x * 2", oracle, drive=drive)  # what the meters load at their first use would count
    right = as_html(examined("double = lambda x: x * 2", oracle, drive=drive))
    assert ">used</th>" in right and "KiB (peak); 1 of 4 operations</td>" in right
    wrong = as_html(examined("double = lambda x: x * 3", oracle, drive=drive))
    assert "wrong value" in wrong and ">used</th>" in wrong and "1 of 4 operations</td>" in wrong
    wasteful = as_html(examined("double = lambda x: x + x - x + x - x + x", oracle, drive=drive))
    # The budget that is not kept has rows of its own, with the case.
    assert "over budget: dispatches" in wasteful and "5 of 4 operations" not in wasteful
    assert ">used</th>" in wasteful and "KiB (peak)</td>" in wasteful
