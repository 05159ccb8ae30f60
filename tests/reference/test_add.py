"""solutions/kernels/add.py: values, gradients, bytes, what the compiler makes of it, what it refuses."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from solutions.kernels.add import add
from tests.reference.trial import BFLOAT16, FLOAT32, agree, archs, compiled, draw, moved, places, traffic_of, types


@types
@places([(1,), (0,), (3, 700), (2, 1, 5000)], [(4096, 4096), (1_000_003,)])
def test_values_and_gradients(device, shape, kind) -> None:
    agree(add, torch.add, [draw(device, kind, *shape, seed=seed) for seed in (0, 1)], kind)


def test_a_view_that_is_not_contiguous_is_taken_as_it_is() -> None:
    x, y = draw("cpu", FLOAT32, 40, 30), draw("cpu", FLOAT32, 30, 40, seed=1)
    assert torch.equal(add(x.T, y), x.T + y)


@pytest.mark.gpu
def test_more_elements_than_32_bits_count() -> None:
    n = 2**31 + 1000
    x = torch.ones(n, dtype=torch.int8, device="cuda")
    out = add(x, x)
    assert out.min().item() == out.max().item() == 2


def test_two_are_read_and_one_is_written() -> None:
    x, y = (draw("cpu", BFLOAT16, 9, 777, seed=seed) for seed in (0, 1))
    traffic = traffic_of(lambda: add(x, y))
    assert moved(traffic, "add_kernel") == {"x_ptr": (x.nbytes, 0), "y_ptr": (x.nbytes, 0), "out_ptr": (0, x.nbytes)}


@pytest.mark.full("kernels")
@archs
def test_each_access_has_sixteen_bytes(arch) -> None:
    x = draw("cpu", BFLOAT16, 8192)
    report = compiled(lambda: add(x, x), arch)["add_kernel"]
    assert set(report.loads) == set(report.stores) == {16}


@pytest.mark.parametrize("y", [torch.ones(3), torch.ones(4, dtype=torch.float16), torch.ones(4, device="meta")])
def test_what_does_not_fit_is_named(y) -> None:
    with pytest.raises(ValueError, match=r"add takes tensors of one shape, type and device: x .* y "):
        add(torch.ones(4), y)
