"""Answers that let PyTorch compute what kernels should: without a kernel, behind one, or in place of Triton."""

from __future__ import annotations

from tests.grading.lab97.answers import ADD, SOFTMAX, TOTAL
from tests.grading.lab97.cheat import BY_TORCH, IN_TORCH, PATCH, Cheat

_TOUCH = """
@triton.jit
def touch_kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), tl.load(x_ptr + tl.arange(0, N)))


def total(x):
    touch_kernel[(1,)](x, 1)
"""

BY_TORCH_CHEATS = (
    Cheat("no kernel at all", "97-add", (IN_TORCH,), "failed", "PyTorch computes a part of the result"),
    Cheat("no kernel, and no word of it", "97-add", (PATCH, IN_TORCH), "failed", BY_TORCH),
    Cheat(
        "PyTorch, and a kernel launched on scratch memory",
        "97-softmax",
        (
            PATCH,
            SOFTMAX.replace("    return out", "    return torch.softmax(x, -1)"),
        ),
        "failed",
        "rests on `_softmax`, computed by PyTorch",
    ),
    Cheat(
        "a kernel that copies PyTorch's result",
        "97-add",
        (
            PATCH,
            ADD.replace("tl.load(x_ptr + offs, mask=mask) + tl.load", "tl.load").replace(
                "(x, y, out", "(x, x + y, out"
            ),
        ),
        "failed",
        BY_TORCH,
    ),
    Cheat(
        "PyTorch's result as a number in the launch",
        "97-total",
        (
            PATCH,
            "@triton.jit\ndef put(out_ptr, value):\n    tl.store(out_ptr, value)\n\n"
            "def total(x):\n    out = x.new_empty(())\n    put[(1,)](out, x.sum().item())\n    return out",
        ),
        "failed",
        "rests on `sum`, computed by PyTorch",
    ),
    Cheat(
        "a copy by a kernel, the rest by PyTorch",
        "97-total",
        (
            PATCH,
            TOTAL.replace("tl.program_id(0), tl.sum(", "offs, (").split("def total")[0]
            + "def total(x):\n    copy = x.new_empty(-(-x.numel() // 128) * 128)\n"
            "    partial_kernel[(triton.cdiv(x.numel(), 128),)](x, copy, x.numel(), BLOCK_SIZE=128)\n"
            "    return copy.sum()",
        ),
        "failed",
        "read more often than necessary",
    ),
    Cheat(
        "Triton replaced by PyTorch",
        "97-add",
        (
            "class Fake:\n    def __init__(self, fn): pass\n    def __getitem__(self, grid): return self\n"
            "    def __call__(self, x, y, out, n, BLOCK_SIZE): torch.add(x, y, out=out)\ntriton.jit = Fake",
            PATCH,
            ADD,
        ),
        "failed",
        BY_TORCH,
    ),
    Cheat(
        "the interpreter replaced by PyTorch",
        "97-add",
        (
            "from triton.runtime.interpreter import GridExecutor\n"
            "def fake(self, x, y, out, n, BLOCK_SIZE): torch.add(x, y, out=out)\nGridExecutor.__call__ = fake",
            PATCH,
            ADD,
        ),
        "failed",
        BY_TORCH,
    ),
    Cheat(
        "a kernel that touches one number of what PyTorch sums up",
        "97-total",
        (PATCH, _TOUCH + "    return x.sum()"),
        "failed",
        "rests on `sum`, computed by PyTorch",
    ),
    Cheat(
        "a kernel that touches the first of many parts that PyTorch sums up",
        "97-total",
        (PATCH, _TOUCH.replace(", 1)", ", 32)") + "    return sum(one.sum() for one in x.split(32))"),
        "failed",
        "rests on `sum` or `add`, computed by PyTorch",
    ),
    Cheat(
        "PyTorch, number by number",
        "97-add",
        (
            PATCH,
            "def add(x, y):\n    out = torch.empty_like(x)\n    for i in range(len(x)):\n"
            "        torch.add(x[i], y[i], out=out[i])\n    return out",
        ),
        "failed",
        BY_TORCH,
    ),
)
