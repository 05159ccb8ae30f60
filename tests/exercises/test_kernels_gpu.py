"""Labs 12 and 13 on a GPU: the solutions, compiled, give on tensors of the GPU what PyTorch gives.

Where both are asked for, the checks run in the interpreter meanwhile. Nothing is timed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import interpreter
from labkit.exercises.lab13.flash_backward import forward
from tests.exercises.harness import answers_in, solution_of

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parents[2]


def solved(exercise_id: str, name: str):
    return answers_in(exercise_id, solution_of(exercise_id))[name]


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to("cuda", dtype)


def same(ours, reference, *tensors: Tensor) -> None:
    """Values and gradients."""
    told, exact = ([x.clone().requires_grad_() for x in tensors] for _ in range(2))
    got, want = ours(*told), reference(*exact)
    outer = draw(*want.shape, seed=99)
    torch.testing.assert_close(got, want, atol=2e-5, rtol=2e-5)
    for one, other in zip(torch.autograd.grad(got, told, outer), torch.autograd.grad(want, exact, outer), strict=True):
        torch.testing.assert_close(one, other, atol=2e-4, rtol=2e-5)


def test_add_and_softmax() -> None:
    x, y = draw(100_000), draw(100_000, seed=1)
    assert torch.equal(solved("12-add", "add")(x, y), x + y)
    x = draw(999, 781)
    torch.testing.assert_close(solved("12-softmax", "softmax")(x), x.softmax(1))


def test_rmsnorm() -> None:
    rmsnorm = solved("12-rmsnorm", "rmsnorm")
    same(
        lambda x, w: rmsnorm(x, w, 1e-6),
        lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
        draw(500, 300),
        draw(300, seed=1),
    )


def test_swiglu() -> None:
    same(solved("12-swiglu", "swiglu"), lambda gate, up: F.silu(gate) * up, draw(500, 300), draw(500, 300, seed=1))


def test_dropout_drops_the_same_elements_forward_and_backward() -> None:
    function = solved("12-bias-gelu-dropout", "bias_gelu_dropout")
    x, bias, y = draw(400, 500).requires_grad_(), draw(500, seed=1), draw(400, 500, seed=2)
    out = function(x, bias, y, 0.25, 7)
    added, full = out - y, F.gelu(x + bias) / 0.75
    kept = (added - full).abs() < 1e-4
    assert torch.all(kept | (added.abs() < 1e-6)) and abs(kept.float().mean().item() - 0.75) < 0.02
    (dx,) = torch.autograd.grad(out.sum(), x)
    assert torch.all(dx[~kept].abs() < 1e-6) and dx[kept].abs().mean() > 0.1
    assert torch.equal(out, function(x, bias, y, 0.25, 7))


def test_the_step_of_adamw() -> None:
    param = torch.nn.Parameter(draw(5000))
    optimizer = torch.optim.AdamW([param], lr=0.1, betas=(0.9, 0.95), eps=1e-3, weight_decay=0.5)
    ours, first, second = param.detach().clone(), torch.zeros(5000, device="cuda"), torch.zeros(5000, device="cuda")
    for step in (1, 2):
        param.grad = draw(5000, seed=step)
        optimizer.step()
        solved("12-adamw", "adamw_step")(ours, param.grad, first, second, step, 0.1, 0.9, 0.95, 1e-3, 0.5)
    torch.testing.assert_close(ours, param.detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_matmul(dtype: torch.dtype) -> None:
    a, b = draw(300, 200, dtype=dtype), draw(200, 250, seed=1, dtype=dtype)
    got = solved("13-matmul", "matmul")(a, b)
    torch.testing.assert_close(got.double(), a.double() @ b.double(), atol=1e-3, rtol=2**-7)


def test_cross_entropy() -> None:
    cross_entropy = solved("13-cross-entropy", "cross_entropy")
    targets = torch.arange(300, device="cuda")
    targets[5] = -100
    logits = draw(300, 1000)
    given, exact = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    want = F.cross_entropy(exact, targets)
    got = cross_entropy(given * 1, targets)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(*(torch.autograd.grad(one, x)[0] for one, x in ((got, given), (want, exact))))


def test_attention() -> None:
    q, k, v = (draw(4, 300, 64, seed=seed) for seed in range(3))
    want = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(solved("13-flash-attention", "attention")(q, k, v), want, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_backward(causal: bool) -> None:
    q, k, v, dout = (draw(4, 300, 32, seed=seed) for seed in range(4))
    leaves = [one.clone().requires_grad_() for one in (q, k, v)]
    want = torch.autograd.grad(F.scaled_dot_product_attention(*leaves, is_causal=causal), leaves, dout)
    out, lse = forward(q.cpu().double(), k.cpu().double(), v.cpu().double(), causal)
    call = solved("13-flash-backward", "attention_backward")
    found = call(q, k, v, out.to("cuda", torch.float32), lse.to("cuda", torch.float32), dout, causal, 32, 16)
    for got, one in zip(found, want, strict=True):
        torch.testing.assert_close(got, one, atol=1e-3, rtol=1e-3)


BESIDE = """
import torch
from labkit import interpreter
assert interpreter.enable(beside_gpu=True)
from tests.exercises.harness import answers_in, public_verdict, solution_of
for exercise_id in ("12-add", "12-rmsnorm", "13-matmul", "13-flash-attention", "13-flash-backward"):
    verdict = public_verdict(exercise_id, solution_of(exercise_id))
    assert verdict.score == 1, (exercise_id, verdict)
x = torch.randn(2**22, device="cuda")
assert torch.equal(answers_in("12-add", solution_of("12-add"))["add"](x, x), 2 * x)
print("all right")
"""


def test_checks_are_interpreted_beside_a_gpu() -> None:
    if unknown := interpreter.changed():
        pytest.skip(f"this Triton is not one that labkit.interpreter was written for: {unknown[0]} changed, and others")
    done = subprocess.run([sys.executable, "-c", BESIDE], capture_output=True, text=True, timeout=250, cwd=ROOT)
    assert done.stdout == "all right\n", done.stderr
