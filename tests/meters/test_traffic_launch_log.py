"""A launch log holds what was launched and moved, and none of the data: it does the same to other inputs."""

from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from triton.tools.tensor_descriptor import TensorDescriptor

from labkit.meters.launch_log import LaunchLog, Rerunner
from tests.kernels.add import add, add_kernel
from tests.kernels.attention import attention
from tests.kernels.faults import atomic_sum_kernel
from tests.kernels.matmul import matmul
from tests.kernels.softmax import softmax
from tests.meters.launch_logs import KERNELS, kinds, replayed, rows_kernel


def rows(x: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros(8)
    rows_kernel[(1,)](TensorDescriptor.from_tensor(x, [2, 8]), out, 8)
    return out


def in_pieces(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Kernels on views, copies and casts, and on one another's results."""
    left = add(x.t().contiguous(), y.half().float().t().contiguous())
    right = add(left[1:], torch.cat([left[:1], left[2:]]))
    return torch.nn.functional.pad(torch.stack([right, torch.ones_like(right)]), (1, 2))


def ended_in_torch(x: torch.Tensor) -> torch.Tensor:
    partial = softmax(x)
    return (partial.sum(0) / 2 - partial.mean(0)).sub_(0.5, alpha=2).mul_(partial.new_full((), 3.0))


def in_place(x: torch.Tensor) -> torch.Tensor:
    return add_kernel[(1,)](x, x, x, x.numel(), BLOCK_SIZE=64) or x


def by_atomics(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(1)
    atomic_sum_kernel[(4,)](x, total, BLOCK_SIZE=16)
    return total.squeeze(0)


@pytest.mark.parametrize(
    "run, shapes",
    [
        (add, [(300,), (300,)]),
        (softmax, [(3, 100)]),
        (lambda a, b: matmul(a, b, (16, 16, 16)), [(20, 30), (30, 17)]),
        (lambda q, k, v: attention(q, k, v)[0], [(2, 40, 16)] * 3),
        (kinds, [(16,), (16,)]),
        (rows, [(4, 8)]),
        (in_pieces, [(4, 6), (4, 6)]),
        (ended_in_torch, [(3, 100)]),
        (in_place, [(50,)]),
        (by_atomics, [(64,)]),
        (lambda x: softmax(x[1:, ::2]), [(5, 24)]),
    ],
    ids=["add", "softmax", "matmul", "attention", "kinds", "rows", "pieces", "torch", "in place", "atomics", "view"],
)
def test_a_log_does_the_same_to_other_inputs(run, shapes) -> None:
    expected, played, measured = replayed(run, *shapes)
    assert torch.equal(played.outputs["out"], expected)
    assert (played.measured, played.lost) == (measured, ())


def test_forward_and_backward_are_one_log() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return add(x, x)

        @staticmethod
        def backward(ctx, grad):
            return add(grad, grad)

    def run(x: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()
        Twice.apply(x).backward(grad)
        return x.grad

    torch.manual_seed(0)
    first, other = ({"x": torch.randn(20), "g": torch.randn(20)} for _ in range(2))
    log = LaunchLog(first)
    with log.recording():
        out = run(**{"x": first["x"], "grad": first["g"]})
    played = Rerunner(KERNELS).rerun(log.as_tree({"out": out}), other)
    assert torch.equal(played.outputs["out"], 2 * other["g"])


def test_a_log_holds_no_data_and_no_memory() -> None:
    x = torch.full((1000,), 12345.0)
    log = LaunchLog({"x": x})
    with log.recording():
        out = add(x, x)
    plain = json.dumps(log.as_tree({"out": out}))
    assert "12345" not in plain and "24690" not in plain
    assert len(plain) < 2000
