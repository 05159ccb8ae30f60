"""What torch.compile fuses: kernels and bytes of common functions at three sizes, eager and compiled, beside the ideal.

Nothing is timed. Eager bytes are counted by the traffic meter: each operation reads its tensors and writes its result.
Compiled bytes come from inductor's own plan for a CPU (`track_compile`): each kernel moves each element of a buffer
once. The ideal reads every input once and writes every result once. So the counts are the same on every machine; of
PyTorch they may change with the version. Lab 12 quotes them, and a test holds its text to the committed file.

    python -m benchmarks --only fusing                     half a minute
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from grading.terminal import say, table
from labkit.meters import track_compile, track_traffic

SIZES = ((32, 64), (256, 512), (1024, 2048))
"""Rows and columns of the first input."""
Inputs = Callable[[int, int], list[Tensor]]


def _like(n: int) -> Inputs:
    return lambda rows, cols: [torch.randn(rows, cols) for _ in range(n)]


def _with_vectors(n: int) -> Inputs:
    return lambda rows, cols: [torch.randn(rows, cols), *(torch.randn(cols) for _ in range(n))]


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat([-right, left], -1) * sin


def adamw(p: Tensor, grad: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m, v = 0.9 * m + 0.1 * grad, 0.95 * v + 0.05 * grad * grad
    return p * (1 - 1e-4) - 1e-3 * m / (v.sqrt() + 1e-8), m, v


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.T / q.shape[-1] ** 0.5).softmax(-1) @ v


FUNCTIONS: dict[str, tuple[Callable, Inputs]] = {
    "bias and GELU": (lambda x, bias: F.gelu(x + bias), _with_vectors(1)),
    "SwiGLU": (lambda gate, up: F.silu(gate) * up, _like(2)),
    "AdamW step": (adamw, _like(4)),
    "rotary embedding": (rotary, _like(3)),
    "RMSNorm": (rms_norm, _with_vectors(1)),
    "LayerNorm, written out": (
        lambda x, w, b: (x - x.mean(-1, keepdim=True)) * (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt() * w + b,
        _with_vectors(2),
    ),
    "softmax, written out": (
        lambda x: (x - x.amax(-1, keepdim=True)).exp() / (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True),
        _like(1),
    ),
    "sum of squares": (lambda x: x.square().sum(), _like(1)),
    "columns over their norms": (lambda x: x / x.norm(dim=0, keepdim=True), _like(1)),
    "sum of rows so far": (lambda x: torch.relu(x.cumsum(-1) + 1), _like(1)),
    "product, bias, GELU": (
        lambda x, w, bias: F.gelu(x @ w + bias),
        lambda rows, cols: [torch.randn(rows, cols), torch.randn(cols, cols), torch.randn(cols)],
    ),
    "attention": (attention, _like(3)),
}


def counted(
    functions: dict[str, tuple[Callable, Inputs]] = FUNCTIONS, sizes: Sequence[tuple[int, int]] = SIZES
) -> list[dict]:
    """A row for each function and size: kernels and bytes, eager and compiled, and the ideal bytes."""
    rows = []
    for name, (function, make) in functions.items():
        for n_rows, n_cols in sizes:
            torch.manual_seed(0)
            inputs = make(n_rows, n_cols)
            with torch.no_grad(), track_traffic() as eager:
                out = function(*inputs)
            torch.compiler.reset()
            with torch.no_grad(), track_compile() as compiled:
                torch.compile(function, dynamic=False)(*inputs)
            outputs = out if isinstance(out, tuple) else (out,)
            generated = sum(kernel.generated for kernel in compiled.kernels)
            rows.append(
                {
                    "function": name,
                    "rows": n_rows,
                    "columns": n_cols,
                    "ideal_bytes": sum(tensor.nbytes for tensor in (*inputs, *outputs)),
                    "eager_operations": len(eager.operations),
                    "eager_bytes": eager.total_bytes,
                    "generated_kernels": generated,
                    "library_calls": len(compiled.kernels) - generated,
                    "compiled_bytes": compiled.kernel_bytes,
                }
            )
    return rows


def main(argv: Sequence[str] = ()) -> dict:
    argparse.ArgumentParser(description=__doc__).parse_args(argv)
    rows = counted()
    header = ("function", "size", "operations", "x ideal", "generated", "of a library", "x ideal")
    say(*table(header, map(_as_cells, rows)))
    return {"rows": rows}


def _as_cells(row: dict) -> list[object]:
    ideal = row["ideal_bytes"]
    return [
        row["function"],
        f"{row['rows']} x {row['columns']}",
        row["eager_operations"],
        f"{row['eager_bytes'] / ideal:.2f}",
        row["generated_kernels"],
        row["library_calls"],
        f"{row['compiled_bytes'] / ideal:.2f}",
    ]
