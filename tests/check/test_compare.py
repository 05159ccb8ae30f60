"""compare: the first difference of two trees, by kind, place and size."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labkit.compare import compare, inputs_untouched
from labkit.spec import EXACT, Case, Observation, Tolerance
from labkit.tree import Opaque, clone, plain

NAN, INF = math.nan, math.inf


def kinds(expected, got, tolerance=EXACT) -> tuple:
    found = compare(expected, got, tolerance)
    return (found.kind, found.path, found.expected, found.got) if found else ()


def vector(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize(
    ("expected", "got", "told"),
    [
        (vector(1), None, ("type", "", "a tensor of float32, shape (1,)", "None")),
        (vector(1), [1.0], ("type", "", "a tensor of float32, shape (1,)", "a list")),
        (vector(1), 1.0, ("type", "", "a tensor of float32, shape (1,)", "a float (1.0)")),
        (
            vector(1),
            Opaque("numpy.ndarray", "array([1.])"),
            ("type", "", "a tensor of float32, shape (1,)", "numpy.ndarray: array([1.])"),
        ),
        (vector(1), Opaque("sparse_coo tensor"), ("type", "", "a tensor of float32, shape (1,)", "sparse_coo tensor")),
        (1, True, ("type", "", "an int (1)", "True or False (True)")),
        (1.5, "1.5", ("type", "", "a float (1.5)", "a string ('1.5')")),
        ("a", None, ("type", "", "a string ('a')", "None")),
        (None, 0, ("type", "", "None", "an int (0)")),
        ({"a": 1}, [1], ("type", "", "a dict", "a list")),
        ([1], {"0": 1}, ("type", "", "a list", "a dict")),
        ([1], 1, ("type", "", "a list", "an int (1)")),
    ],
)
def test_types(expected, got, told) -> None:
    assert kinds(expected, got) == told


@pytest.mark.parametrize(
    ("expected", "got", "told"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, ("keys", "", "a, b", "a")),
        ({"a": 1}, {}, ("keys", "", "a", "no keys")),
        ({"g": {"w": 1}}, {"g": {"v": 1}}, ("keys", "g", "w", "v")),
        ([1, 2], [1], ("length", "", "2 items", "1 items")),
        ({"l": [[1, 2], [3]]}, {"l": [[1, 2], [3, 4]]}, ("length", "l.1", "1 items", "2 items")),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, ("value", "a.1.b", "2", "3")),
        ("left", "right", ("value", "", "'left'", "'right'")),
        (True, False, ("value", "", "True", "False")),
        (True, 1, ("value", "", "True", "1")),
        (3, 4, ("value", "", "3", "4")),
        (3, 3.5, ("value", "", "3", "3.5")),
    ],
)
def test_structure_and_plain_values(expected, got, told) -> None:
    assert kinds(expected, got) == told


@pytest.mark.parametrize(
    ("expected", "got"),
    [(3, 3.0), (3.0, 3), (NAN, NAN), (INF, INF), (None, None), ([], []), ({}, {}), (torch.ones(0), torch.ones(0))],
)
def test_what_counts_as_equal(expected, got) -> None:
    assert compare(expected, got) is None


def test_dtype_comes_before_shape_and_shape_before_values() -> None:
    assert kinds(torch.ones(2), torch.zeros(3, dtype=torch.float64)) == ("dtype", "", "float32", "float64")
    assert kinds(torch.ones(2), torch.zeros(3)) == ("shape", "", "(2,)", "(3,)")
    assert kinds(torch.ones(2), torch.zeros(2, 1)) == ("shape", "", "(2,)", "(2, 1)")
    assert kinds(torch.ones(()), torch.ones(1)) == ("shape", "", "()", "(1,)")


def test_the_dtype_may_be_left_free() -> None:
    free = Tolerance(check_dtype=False)
    assert compare(vector(1, 2), torch.tensor([1, 2]), free) is None
    assert compare(vector(0.1), vector(0.1, dtype=torch.float64), Tolerance(rtol=1e-6, check_dtype=False)) is None


def test_the_first_wrong_element_and_how_many() -> None:
    got = torch.zeros(3, 4)
    got[1, 2], got[2, 0] = 0.5, -2.0
    found = compare(torch.zeros(3, 4), got, Tolerance(atol=0.1))
    assert (found.index, found.n_bad, found.n_total, found.max_error) == ((1, 2), 2, 12, 2.0)
    assert (found.expected, found.got, found.dtype) == ("0.0", "0.5", "float32")


def test_a_number_without_axes() -> None:
    assert compare(torch.tensor(1.0), torch.tensor(2.0)).index == ()


@pytest.mark.parametrize(
    ("expected", "got", "bad"),
    [
        (vector(1, NAN), vector(1, NAN), None),
        (vector(1, NAN), vector(1, 0), (1,)),
        (vector(1, 0), vector(1, NAN), (1,)),
        (vector(INF, -INF), vector(INF, -INF), None),
        (vector(INF), vector(-INF), (0,)),
        (vector(INF), vector(3e38), (0,)),
        (vector(3e38), vector(INF), (0,)),
        (vector(INF), vector(NAN), (0,)),
    ],
)
def test_nan_and_infinity_whatever_the_tolerance(expected, got, bad) -> None:
    for tolerance in (Tolerance(), Tolerance(atol=1e30, rtol=0.5)):
        found = compare(expected, got, tolerance)
        assert (found and found.index) == bad
    if bad:
        assert compare(expected[bad].item(), got[bad].item(), tolerance)
        assert not math.isfinite(found.max_error)


def test_tolerance_is_relative_to_the_expected_value() -> None:
    tolerance = Tolerance(atol=0.5, rtol=0.1)
    assert compare(vector(10), vector(11.5), tolerance) is None
    assert compare(vector(11.6), vector(10), tolerance) is None
    assert compare(vector(10), vector(11.6), tolerance).max_error == pytest.approx(1.6)
    assert compare(10.0, 11.5, tolerance) is None
    assert compare(10.0, 11.6, tolerance).kind == "value"
    assert compare(10, 11, tolerance) is None


def test_a_tolerance_per_key() -> None:
    expected, got = {"a": vector(1), "b": vector(1)}, {"a": vector(1.05), "b": vector(1.05)}
    assert compare(expected, got, {"a": Tolerance(atol=0.1), "b": Tolerance(atol=0.1)}) is None
    assert compare(expected, got, {"a": Tolerance(atol=0.1)}).path == "b"
    assert compare(expected, {"a": got["a"]}, {"a": Tolerance(atol=0.1)}).kind == "keys"
    with pytest.raises(TypeError, match="needs a dict"):
        compare(vector(1), vector(1), {"a": Tolerance()})


INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64)


@pytest.mark.parametrize("expected", [2.5, 7])
@pytest.mark.parametrize("got", [10**400, -(10**5000)], ids=["large", "huge"])
def test_an_integer_beyond_every_float_is_a_wrong_value(expected: float, got: int) -> None:
    found = compare(expected, got, Tolerance(rtol=1e-3))
    assert (found.kind, found.got) == ("value", f"an integer of {got.bit_length()} bits")


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool], ids=str)
def test_integers(dtype: torch.dtype) -> None:
    expected, got = torch.tensor([0, 1, 0]).to(dtype), torch.tensor([0, 1, 1]).to(dtype)
    assert compare(expected, expected.clone()) is None
    assert compare(expected, got).index == (2,)


@pytest.mark.parametrize(("expected", "got"), [(2**63 - 1, -1), (2**62, 2**62 + 1), (-(2**63), 2**63 - 1)])
def test_integers_beyond_what_a_float_tells_apart(expected: int, got: int) -> None:
    found = compare(torch.tensor([expected]), torch.tensor([got]))
    assert (found.expected, found.got) == (str(expected), str(got))
    assert found.max_error >= 1


FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats(dtype: torch.dtype) -> None:
    expected = torch.tensor([0.5, NAN, 2.0]).to(dtype)
    assert compare(expected, expected.clone()) is None
    got = torch.tensor([0.5, NAN, 3.0]).to(dtype)
    found = compare(expected, got)
    assert (found.index, found.expected, found.got, found.max_error) == ((2,), "2.0", "3.0", 1.0)


def test_complex_numbers() -> None:
    expected = torch.tensor([1 + 1j, 2 + 0j])
    assert compare(expected, expected.clone()) is None
    assert compare(expected, expected + 3j).max_error == 3.0


def test_as_many_digits_as_tell_two_numbers_apart() -> None:
    found = compare(1.0000000001, 1.0000000002)
    assert (found.expected, found.got) == ("1.0000000001", "1.0000000002")
    found = compare(vector(0.1, dtype=torch.float64), vector(0.1 + 2**-56, dtype=torch.float64))
    assert found.expected != found.got
    assert kinds(16777216.0, 16777217.0)[2:] == ("16777216.0", "16777217.0")
    assert kinds(50.00000000000005, 50.0)[2:] == (f"{50.00000000000005:.17g}", "50.0")


numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(), st.booleans(), st.text(max_size=3), st.none())
tensors = st.builds(
    lambda values, dtype: torch.tensor(values).to(dtype),
    st.lists(st.floats(width=32), max_size=4),
    st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64]),
)
trees = st.recursive(
    st.one_of(numbers, tensors),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(trees)
def test_a_tree_equals_its_clone_and_its_plain_self(tree) -> None:
    assert compare(tree, clone(tree)) is None
    assert compare(tree, plain(tree)) is None


@given(trees, trees)
def test_what_differs_one_way_differs_the_other_way(left, right) -> None:
    assert (compare(left, right) is None) == (compare(right, left) is None)


def test_the_inputs_are_untouched() -> None:
    tree = {"x": torch.ones(2), "n": [1, {"y": torch.zeros(1)}]}
    assert inputs_untouched(Observation(Case(), tree, back=clone(tree))) is None
    changed = clone(tree)
    changed["n"][1]["y"] += 1
    assert inputs_untouched(Observation(Case(), tree, back=changed)) == "the input `n.1.y` was changed in place"
    shorter = {"x": torch.ones(2), "n": [1]}
    assert inputs_untouched(Observation(Case(), tree, back=shorter)) == "the input `n.1.y` was changed in place"
