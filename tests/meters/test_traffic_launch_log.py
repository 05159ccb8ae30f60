"""A launch log holds what was launched and moved, and none of the data: it does the same to other inputs."""

from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from labkit import interpreter
from labkit.meters import METERS
from labkit.meters.launch_log import MAX_ENTRIES, LaunchLog, Rerunner, UnusableLog, digest_of_function
from labkit.meters.launch_log.moves import MAX_CONSTANTS
from tests.kernels.add import add, add_kernel
from tests.kernels.attention import attention, attention_kernel
from tests.kernels.faults import atomic_sum_kernel
from tests.kernels.matmul import matmul, matmul_kernel
from tests.kernels.softmax import softmax, softmax_kernel

interpreter.enable()


@triton.jit
def square(x):
    return x * x


@triton.jit
def kinds_kernel(tensors, out_ptr, n: tl.constexpr, DTYPE: tl.constexpr, FUNCTION: tl.constexpr, scale=2.0):
    offs = tl.arange(0, n)
    x = tl.load(tensors[0] + offs) + tl.load(tensors[1] + offs)
    tl.store(out_ptr + offs, (FUNCTION(x) * scale).to(DTYPE))


@triton.jit
def rows_kernel(x_desc, out_ptr, n: tl.constexpr):
    x = x_desc.load([1, 0])
    tl.store(out_ptr + tl.arange(0, n), tl.sum(x, axis=0))


KERNELS = {
    (one.fn.__name__, digest_of_function(one.fn)): one
    for kernels in ((add_kernel, softmax_kernel, matmul_kernel, attention_kernel), (atomic_sum_kernel, square))
    for one in (*kernels, kinds_kernel, rows_kernel)
}


def replayed(run, *shapes: tuple[int, ...]):
    """What `run` makes of fresh inputs, and what its log makes of them, which was recorded on others."""
    torch.manual_seed(0)
    first = {f"x{n}": torch.randn(*shape) for n, shape in enumerate(shapes)}
    other = {name: torch.randn_like(tensor) for name, tensor in first.items()}
    log = LaunchLog(first)
    measured: dict[str, float] = {}
    with METERS["traffic"](measured, None), log.recording():
        out = run(*first.values())
    plain = json.loads(json.dumps(log.as_tree({"out": out})))
    kept = {name: tensor.clone() for name, tensor in other.items()}
    played = Rerunner(KERNELS).rerun(plain, other)
    assert all(torch.equal(other[name], kept[name]) for name in kept), "it works on copies of the inputs"
    return run(*kept.values()), played, measured


def kinds(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(16, dtype=torch.bfloat16)
    kinds_kernel[(1,)]((x, y), out, 16, tl.bfloat16, square)
    return out


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
def test_a_tape_does_the_same_to_other_inputs(run, shapes) -> None:
    expected, played, measured = replayed(run, *shapes)
    assert torch.equal(played.outputs["out"], expected)
    assert (played.measured, played.lost) == (measured, ())


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


def test_a_tape_holds_no_data_and_no_memory() -> None:
    x = torch.full((1000,), 12345.0)
    log = LaunchLog({"x": x})
    with log.recording():
        out = add(x, x)
    plain = json.dumps(log.as_tree({"out": out}))
    assert "12345" not in plain and "24690" not in plain
    assert len(plain) < 2000


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


def test_a_tape_has_an_end() -> None:
    x = torch.zeros(4)
    log = LaunchLog({"x": x})
    with log.recording():
        for _ in range(MAX_ENTRIES + 3):
            x.clone()
    plain = log.as_tree({})
    assert (len(plain["entries"]), plain["left_out"]) == (MAX_ENTRIES, 3)
    with pytest.raises(UnusableLog, match="more than can be recorded: 3 too many"):
        Rerunner(KERNELS).rerun(plain, {"x": x})


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda log: log["entries"].append({"do": "eval"}), "an entry of no known kind: eval"),
        (lambda log: log["entries"][0].update(kernel=["open", ""]), "kernel open is not one that is known"),
        (lambda log: log["storages"].append({"bytes": 2**40}), "it works in 1,099,.* bytes of memory; 536,870,912"),
        (
            lambda log: log["entries"][0]["arguments"].update(n={"unknown": "Tensor"}),
            "argument n of kernel add_kernel is of type Tensor, which cannot be sent",
        ),
        (
            lambda log: log["entries"][0]["arguments"].update(n={"plain": []}),
            "argument n of kernel add_kernel is of type",
        ),
        (
            lambda log: log["entries"].append(
                {"do": "constants", "to": log["outputs"]["out"], "values": [0.0] * (MAX_CONSTANTS + 1)}
            ),
            f"{MAX_CONSTANTS + 1} constants at once",
        ),
        (lambda log: log["storages"].append({"input": "x"}), "names an input twice"),
        (lambda log: log["outputs"]["out"].update(storage=-1), "numbered from 0"),
    ],
    ids=["kind", "kernel", "memory", "argument", "list", "constants", "input", "storage"],
)
def test_what_cannot_be_played_is_named(change, says: str) -> None:
    x = torch.zeros(4)
    log = LaunchLog({"x": x})
    with log.recording():
        out = add(x, x)
    plain = log.as_tree({"out": out})
    change(plain)
    with pytest.raises(UnusableLog, match=says):
        Rerunner(KERNELS).rerun(plain, {"x": x})


def test_a_kernel_that_launches_others_is_refused() -> None:
    class Twice:
        def __getitem__(self, grid):
            return lambda **arguments: [add_kernel[grid](**arguments) for _ in range(2)]

    x = torch.zeros(4)
    log = LaunchLog({"x": x})
    with log.recording():
        out = add(x, x)
    with pytest.raises(UnusableLog, match="kernel add_kernel launches kernels itself"):
        Rerunner(dict.fromkeys(KERNELS, Twice())).rerun(log.as_tree({"out": out}), {"x": x})


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


def test_a_place_outside_of_its_storage_is_refused() -> None:
    x = torch.zeros(4)
    log = LaunchLog({"x": x})
    with log.recording():
        out = add(x, x)
    plain = log.as_tree({"out": out})
    plain["outputs"]["out"]["offset"] = 1
    with pytest.raises(RuntimeError, match="out of bounds"):
        Rerunner(KERNELS).rerun(plain, {"x": x})
