"""What PyTorch's own operations must move, beside a kernel that does the same; needs no Triton."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from labkit.meters.traffic import track_traffic

X, Y = torch.randn(16, 32), torch.randn(16, 32)
SIZE = 16 * 32 * 4


@pytest.mark.parametrize(
    ("run", "moved"),
    [
        (lambda: X + Y, [("add", 2 * SIZE, SIZE)]),
        (lambda: X * X, [("mul", SIZE, SIZE)]),
        (lambda: X + 1.0, [("add", SIZE, SIZE)]),
        (lambda: X + Y[0], [("add", SIZE + 128, SIZE)]),
        (lambda: X + Y[:1].expand(16, 32), [("add", SIZE + 128, SIZE)]),
        (lambda: X.t().view(32, 16)[:4].unsqueeze(0).expand(3, 4, 16).detach(), []),
        (lambda: X.sum(), [("sum", SIZE, 4)]),
        (lambda: torch.softmax(X, -1), [("_softmax", SIZE, SIZE)]),
        (lambda: X @ Y.t(), [("mm", 2 * SIZE, 16 * 16 * 4)]),
        (lambda: torch.zeros(8), [("zeros", 0, 32)]),
        (lambda: torch.empty(8), []),
        (lambda: X.new_full((8,), 2.0), [("new_full", 0, 32)]),
        (lambda: torch.ones_like(X), [("ones_like", 0, SIZE)]),
        (lambda: X.clone().add_(Y), [("clone", SIZE, SIZE), ("add_", 2 * SIZE, SIZE)]),
        (lambda: torch.empty(16, 32).copy_(X), [("copy_", SIZE, SIZE)]),
        (lambda: torch.empty(16, 32).fill_(1.0), [("fill_", 0, SIZE)]),
        (lambda: torch.add(X, Y, out=torch.empty(16, 32)), [("add", 2 * SIZE, SIZE)]),
        (lambda: X.bfloat16(), [("_to_copy", SIZE, SIZE // 2)]),
        (lambda: X[torch.tensor([1, 2, 3])], [("index", 3 * 128 + 24, 3 * 128)]),
        (lambda: torch.cat([X, Y]), [("cat", 2 * SIZE, 2 * SIZE)]),
    ],
)
def test_bytes_of_an_operation(run, moved: list) -> None:
    with track_traffic() as traffic:
        run()
    found = [(one.name, one.load_bytes, one.store_bytes) for one in traffic.operations]
    # Some versions write "zeros" as an empty tensor and a zero_ into it.
    found = [("zeros" if name == "zero_" else name, *rest) for name, *rest in found]
    setup = [("lift_fresh", 24, 0)] if found and found[0][0].startswith("lift_fresh") else []
    assert [one for one in found if one not in setup and not one[0].startswith("lift_fresh")] == moved


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:The PyTorch API of nested")
@pytest.mark.parametrize(
    ("make", "run", "moved"),
    [
        (torch.eye, torch.Tensor.to_sparse, ("_to_sparse", 64, 80)),
        (lambda n: torch.eye(n).to_sparse(), lambda x: x @ X[:4], ("mm", 80 + 4 * 128, 4 * 128)),
        (lambda n: torch.eye(n).to_sparse(), lambda x: x.mul_(2), ("mul_", 80, 80)),
        (lambda n: torch.eye(n).to_sparse_csr(), torch.Tensor.sum, ("sum", 88, 4)),
        (lambda n: torch.nested.nested_tensor([X[:n], X[:1]]), lambda x: x * 2, ("mul", 5 * 128, 5 * 128)),
    ],
    ids=["from dense", "sparse times dense", "in place", "compressed", "nested"],
)
def test_sparse_and_nested_tensors_move_what_they_hold(make, run, moved: tuple) -> None:
    x = make(4)
    with track_traffic() as traffic:
        run(x)
    assert [(one.name, one.load_bytes, one.store_bytes) for one in traffic.operations] == [moved]


def test_composite_operations_are_taken_apart_in_inference_mode() -> None:
    layer = torch.nn.Linear(32, 8)
    with torch.inference_mode(), track_traffic() as traffic:
        layer(X)
    assert [one.name for one in traffic.operations] == ["addmm"]
    assert traffic.load_bytes == SIZE + (32 * 8 + 8) * 4


def test_unfused_softmax_moves_several_times_what_a_fused_one_does() -> None:
    with track_traffic() as eager:
        e = torch.exp(X - X.amax(-1, keepdim=True))
        e / e.sum(-1, keepdim=True)
    # max: 1 read; difference and quotient: 1 read and a column, 1 write; exp: 1 read, 1 write; sum: 1 read.
    assert (eager.load_bytes, eager.store_bytes) == (5 * SIZE + 2 * 64, 3 * SIZE + 2 * 64)
    assert eager.launches == []


def test_without_triton(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with track_traffic() as traffic:
        X + Y
    assert traffic.total_bytes == 3 * SIZE
