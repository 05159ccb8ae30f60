"""What PyTorch computes between kernels is not played, and named: a log moves numbers, and works none out."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit.meters.launch_log import LaunchLog
from tests.kernels.add import add, add_kernel
from tests.kernels.softmax import softmax
from tests.meters.launch_logs import kinds, replayed


@pytest.mark.parametrize(
    "run, lost",
    [
        (lambda x: torch.softmax(x, -1), "_softmax"),
        (lambda x: add(x, torch.exp(x)), "exp"),
        (lambda x: x.sum(0), "sum"),
        (lambda x: softmax(x) + x, "add"),
        (lambda x: softmax(x).mul_(x), "mul_"),
        # Copied by PyTorch or by nobody, an input is no result of a kernel.
        (lambda x: softmax(x).copy_(x).sum(1), "sum"),
    ],
)
def test_what_pytorch_computes_is_not_played(run, lost: str) -> None:
    _, played, measured = replayed(run, (3, 8))
    assert played.lost == (lost,)
    assert played.outputs["out"].isnan().any()
    assert played.measured["computed_by_torch"] == measured["computed_by_torch"] == 1


def test_numbers_that_were_computed_from_data_are_those_of_other_data() -> None:
    expected, played, _ = replayed(lambda x: kinds(x[0], x[1].fill_(x.sum().item())), (2, 16))
    assert not torch.equal(played.outputs["out"], expected)


def test_memory_that_nobody_filled_holds_no_number() -> None:
    _, played, _ = replayed(lambda x: add(x, torch.empty_like(x)), (30,))
    assert played.outputs["out"].isnan().all()


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:The PyTorch API of nested")
@pytest.mark.parametrize(
    "run, lost",
    [
        (lambda x: x.to_sparse() @ x, ["_to_sparse", "mm"]),
        (lambda x: x + x.to_sparse().mul_(2), ["_to_sparse", "mul_", "add"]),
        (lambda x: x.to_sparse_csr().sum(), ["_to_sparse_csr", "sum"]),
        (lambda x: torch.nested.nested_tensor([x]).clone(), ["_nested_tensor_from_tensor_list", "clone"]),
        (lambda x: torch.nn.LazyLinear(3)(x), ["uniform_", "uniform_", "addmm"]),
    ],
    ids=["product", "sum", "compressed", "nested", "not initialized"],
)
def test_what_is_not_strided_is_not_played(run, lost: list[str]) -> None:
    x = torch.eye(4)
    log = LaunchLog({"x": x})
    with log.recording():
        run(x)
    assert [(entry["do"], entry["name"]) for entry in log.as_tree({})["entries"]] == [("lost", name) for name in lost]


def touched(x: torch.Tensor, n: int) -> torch.Tensor:
    """As it was, but a kernel has stored to its first n numbers."""
    add_kernel[(1,)](x, torch.zeros_like(x), x, n, BLOCK_SIZE=64)
    return x


@pytest.mark.parametrize(
    "run, lost",
    [
        (lambda x: touched(x, 64).sum(), ()),
        (lambda x: torch.cat([touched(x, 64), x.new_zeros(3)]).sum(), ()),
        (lambda x: (torch.zeros_like(x).add_(touched(x, 64)) + torch.ones_like(x)).clone() / x[3], ()),
        (lambda x: touched(x, 9)[:9].half().sum(), ()),
        (lambda x: touched(x, 9)[::2][:5].sum(), ()),
        (lambda x: touched(x, 1).sum(), ("sum",)),
        (lambda x: touched(x, 63).sum(), ("sum",)),
        (lambda x: touched(x, 9)[::2][:6].sum(), ("sum",)),
        (lambda x: torch.cat([touched(x, 9)[:9], x[9:11]]).sum(), ("sum",)),
        (lambda x: sum(x[n] for n in range(16)), ()),
        (lambda x: sum(x[n] for n in range(17)), ("add",)),
    ],
)
def test_pytorch_computes_with_what_kernels_stored_number_for_number(run, lost: tuple[str, ...]) -> None:
    first, played, measured = replayed(lambda x: run(x), (64,))
    assert (played.lost, measured["computed_by_torch"]) == (lost, len(lost))
    assert lost or torch.allclose(played.outputs["out"], first)
