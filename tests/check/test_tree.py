"""Plain trees: what becomes plain data, what is opaque, and that copies are copies."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.tree import MAX_DEPTH, Opaque, clone, leaves, plain, same, told


class Plain:
    pass


class Shy:
    def __repr__(self) -> str:
        raise ValueError("no")


class Sub(torch.Tensor):
    pass


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "text", [1, [2]], {"a": {"b": [None]}}])
def test_plain_data_stays_as_it_is(value) -> None:
    assert plain(value) == value
    assert type(plain(value)) is type(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({1: "a"}, {"1": "a"}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
    ],
)
def test_what_is_nearly_plain_becomes_plain(value, expected) -> None:
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (np.ones(2), "numpy.ndarray"),
        ({1, 2}, "set"),
        (1j, "complex"),
        (b"bytes", "bytes"),
        (torch.float32, "torch.dtype"),
        (Plain(), f"{__name__}.Plain"),
        ({(1, 2): 3}, "dict"),
        (torch.ones(2).to_sparse(), "sparse_coo tensor"),
        (torch.ones(2, device="meta"), "tensor on the meta device, which holds no values"),
        (torch.ones(2).as_subclass(Sub), f"{__name__}.Sub"),
    ],
)
def test_anything_else_is_opaque(value, type_name: str) -> None:
    found = plain([value])[0]
    assert isinstance(found, Opaque)
    assert found.type_name == type_name


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_nested_tensor_is_opaque(layout: torch.layout) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
    assert isinstance(plain(nested), Opaque) and "nested" in plain(nested).type_name


def test_the_text_of_something_opaque() -> None:
    assert plain(Shy()).text == "<its repr raised ValueError>"
    assert " at 0x" not in plain(Plain()).text
    assert len(plain(set(range(1000))).text) == 80


def test_an_entry_is_told_in_a_line() -> None:
    assert told(["gather", 0]) == "('gather', 0)" and told([1, 2, 3, 4]) == "[1, 2, 3, 4]"
    assert told(plain(iter([1]))) == "something of type list_iterator"
    assert told("x" * 100) == "'" + "x" * 56 + "..."


def test_a_tree_that_contains_itself_ends() -> None:
    loop: list = []
    loop.append(loop)
    found = plain(loop)
    for _ in range(MAX_DEPTH + 1):
        found = found[0]
    assert found == Opaque("nesting deeper than 16 levels")


def test_a_tensor_is_detached_contiguous_and_a_copy() -> None:
    source = torch.arange(6.0).reshape(2, 3).requires_grad_()
    found = plain(source.T)
    assert not found.requires_grad
    assert found.is_contiguous()
    assert torch.equal(found, source.detach().T)
    with torch.no_grad():
        source += 1
    assert found[0, 0] == 0
    assert type(plain(torch.nn.Parameter(torch.ones(1)))) is torch.Tensor


def test_a_conjugate_view_is_resolved() -> None:
    found = plain(torch.tensor([1 + 2j]).conj())
    assert not found.is_conj()
    assert found[0] == 1 - 2j


def test_a_clone_shares_no_memory() -> None:
    tree = {"x": torch.zeros(2), "l": [torch.zeros(1), {"y": torch.zeros(1)}]}
    copy = clone(tree)
    for _, leaf in leaves(copy):
        leaf += 1
    copy["l"].append(3)
    assert all((leaf == 0).all() for _, leaf in leaves(tree))
    assert len(tree["l"]) == 2


def test_leaves_have_dotted_paths_in_order() -> None:
    assert list(leaves({"b": [1, {"c": None}], "a": "x"})) == [("b.0", 1), ("b.1.c", None), ("a", "x")]
    assert list(leaves(7)) == [("", 7)]
    assert list(leaves({})) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (True, 1),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
        (torch.ones(2), torch.ones(2, dtype=torch.float64)),
        (torch.ones(2), torch.ones(2, 1)),
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.ones(2), None),
        ([torch.ones(2)], [torch.zeros(2)]),
    ],
)
def test_what_is_not_the_same(left, right) -> None:
    assert not same(left, right)
    assert same(left, clone(left))


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.bool, torch.complex64],
    ids=str,
)
def test_the_same_in_every_dtype(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    assert same(tensor, tensor.clone())
    assert same(tensor, tensor.T)
    assert not same(tensor, tensor[:, :1])
    assert same(tensor[0, 0], tensor[0, 0].clone())


def test_nan_is_the_same_as_nan() -> None:
    assert same([float("nan"), torch.tensor([float("nan")])], [float("nan"), torch.tensor([float("nan")])])


@settings(max_examples=40)
@given(st.recursive(st.one_of(st.none(), st.integers(), st.floats(), st.text()), st.lists))
def test_plain_twice_is_plain_once(tree) -> None:
    once = plain(tree)
    assert same(plain(once), once) or any(isinstance(leaf, Opaque) for _, leaf in leaves(once))
