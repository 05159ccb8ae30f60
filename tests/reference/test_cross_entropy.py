"""solutions/kernels/cross_entropy.py: values, gradients, bytes, what the compiler makes of it, what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from solutions.kernels.cross_entropy import PLAN, cross_entropy
from tests.reference.trial import (
    BFLOAT16,
    FLOAT32,
    Type,
    agree,
    archs,
    compiled,
    draw,
    moved,
    near,
    places,
    traffic_of,
    types,
)


def targets(device: str, n_rows: int, n_cols: int) -> torch.Tensor:
    """One row in five does not count."""
    drawn = torch.randint(n_cols, (n_rows,), generator=torch.Generator().manual_seed(5))
    return torch.where(torch.arange(n_rows) % 5 == 3, -100, drawn).to(device)


@types
@places([(1, 1), (6, 50), (9, 1000), (4, PLAN.block + 77)], [(4096, 32000), (512, 128256), (999, 50257)])
def test_values_and_gradients(device, shape, kind) -> None:
    target = targets(device, *shape)
    # The gradient of a mean over n rows is small: n times the mean has numbers that the tolerances are made for.
    agree(
        lambda logits: shape[0] * cross_entropy(logits * 1, target),
        lambda logits: shape[0] * F.cross_entropy(logits, target),
        [draw(device, kind, *shape, scale=3.0)],
        Type(kind.dtype, 4 * kind.atol, 2 * kind.rtol),
    )


def test_the_gradient_stands_in_place_of_the_logits() -> None:
    logits, target = draw("cpu", FLOAT32, 6, 50), targets("cpu", 6, 50)
    given = logits.clone().requires_grad_()
    loss = cross_entropy(given, target)
    wanted = logits.double().requires_grad_()
    (want,) = torch.autograd.grad(F.cross_entropy(wanted, target), wanted)
    near(given.detach(), want, FLOAT32)
    (gradient,) = torch.autograd.grad(loss, given, retain_graph=True)
    assert gradient.data_ptr() == given.data_ptr()
    with pytest.raises(RuntimeError, match="call backward once"):
        torch.autograd.grad(loss, given)


def test_no_row_that_counts() -> None:
    logits = torch.ones(3, 8)
    assert cross_entropy(logits, torch.full((3,), -100)).isnan()
    assert not logits.any()


@places([(4, 50)], [])
def test_what_is_masked_out_has_no_gradient(device, shape) -> None:
    logits, target = draw(device, FLOAT32, *shape), torch.zeros(4, dtype=torch.int64, device=device)
    logits[:, 20:] = -float("inf")
    # Nothing but -inf in the first block of a long row, as behind a mask.
    late = torch.full((4, PLAN.block + 10), -float("inf"), device=device)
    late[:, -3:] = 1.0
    for given, at in ((logits, target), (late, target + PLAN.block + 9)):
        agree(lambda x, at=at: cross_entropy(x * 1, at), lambda x, at=at: F.cross_entropy(x, at), [given], FLOAT32)


def test_logits_are_read_twice_and_written_once() -> None:
    logits = draw("cpu", BFLOAT16, 5, PLAN.block + 100).requires_grad_()
    target = torch.arange(5)
    traffic = traffic_of(lambda: cross_entropy(logits, target).backward())
    at_target = 5 * logits.element_size()
    assert moved(traffic, "cross_entropy_kernel")["logits_ptr"] == (2 * logits.nbytes + at_target, logits.nbytes)
    # Nothing comes behind the loss, so nothing is scaled.
    assert moved(traffic, "scale_in_place_kernel")["x_ptr"] == (0, 0)


@pytest.mark.full("kernels")
@archs
def test_the_logits_are_moved_sixteen_bytes_at_a_time(arch) -> None:
    logits = draw("cpu", BFLOAT16, 2, 2 * PLAN.block).requires_grad_()
    reports = compiled(lambda: (2 * cross_entropy(logits, torch.arange(2))).backward(), arch)
    assert all(report.figures()["vector_width"] == 16 for report in reports.values()), list(map(str, reports.values()))


@pytest.mark.parametrize(
    ("logits", "target", "said"),
    [
        (torch.ones(2, 3, 4), torch.zeros(2, dtype=torch.int64), r"a target for each row, not \(2, 3, 4\) and \(2,\)"),
        (torch.ones(2, 3), torch.zeros(3, dtype=torch.int64), r"not \(2, 3\) and \(3,\)"),
        (torch.ones(0, 3), torch.zeros(0, dtype=torch.int64), r"not \(0, 3\) and \(0,\)"),
        (torch.ones(3, 2).T, torch.zeros(2, dtype=torch.int64), "must be contiguous: call .contiguous"),
    ],
)
def test_bad_input_is_named(logits, target, said) -> None:
    with pytest.raises(ValueError, match=said):
        cross_entropy(logits, target)
