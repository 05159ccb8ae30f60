"""What `benchmarks.kernels` measures: each operation's sizes, its ways of being computed, its least work and its aims.

Sizes are those of language models. Nothing is timed here, and a way whose package is missing is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Shape = tuple[int, ...]
Work = Callable[..., Tensor]
LIGER = importlib.util.find_spec("liger_kernel") is not None


@dataclass(frozen=True)
class Pass:
    """What is timed: "forward", "backward" alone, or "both".

    moved: how many times the bytes of the first input pass through memory, weights and other vectors left out; None
    where arithmetic is the limit. aim: of the rate of a copy of as many bytes, or of a large matrix product, by size.
    """

    name: str
    moved: float | None
    aim: Callable[[Shape], float]


@dataclass(frozen=True)
class Op:
    """One operation. inputs(shape, dtype, device): the arguments; floating ones want a gradient unless no pass has any.

    ours, liger, plans: what makes the function, so that modules are imported when they are needed. liger: None where
    Liger Kernel has no such operation. plans: ours in other ways, for whoever has to choose among them. flops: of the
    forward pass, for what is compared with a matrix product.
    """

    name: str
    sizes: Sequence[Shape]
    dry: Shape
    inputs: Callable[[Shape, torch.dtype, str], list[Tensor]]
    ours: Callable[[], Work]
    eager: Work
    passes: Sequence[Pass]
    liger: Callable[[], Work] | None = None
    plans: Mapping[str, Callable[[], Work]] = field(default_factory=dict)
    flops: Callable[[Shape], float] | None = None

    def ways(self, dry: bool) -> dict[str, Callable[[], Work]]:
        """By name, what makes the function: an error in making one concerns that one alone."""
        # Dry, the compiler's front end alone runs: what it makes of the graph is not looked at.
        backend = "eager" if dry else "inductor"
        made = {
            "ours": self.ours,
            "eager": lambda: self.eager,
            "compile": lambda: torch.compile(self.eager, dynamic=False, backend=backend),
        }
        made |= self.plans
        if self.liger is not None and LIGER and not dry:
            made["liger"] = self.liger
        return made


def normal(*shape: int, dtype: torch.dtype, device: str, seed: int = 0) -> Tensor:
    """The same numbers for every way."""
    return torch.randn(*shape, generator=torch.Generator(device).manual_seed(seed), device=device).to(dtype)


def _same(n: int) -> Callable[[Shape, torch.dtype, str], list[Tensor]]:
    return lambda shape, dtype, device: [normal(*shape, dtype=dtype, device=device, seed=i) for i in range(n)]


def _rows(vectors: int) -> Callable[[Shape, torch.dtype, str], list[Tensor]]:
    def inputs(shape: Shape, dtype: torch.dtype, device: str) -> list[Tensor]:
        first = normal(*shape, dtype=dtype, device=device)
        rest = [1 + normal(shape[-1], dtype=dtype, device=device, seed=1 + i) / 4 for i in range(vectors)]
        return [first, *rest]

    return inputs


def _logits(shape: Shape, dtype: torch.dtype, device: str) -> list[Tensor]:
    target = torch.randint(shape[1], shape[:1], generator=torch.Generator(device).manual_seed(1), device=device)
    return [normal(*shape, dtype=dtype, device=device), target]


def _factors(shape: Shape, dtype: torch.dtype, device: str) -> list[Tensor]:
    m, n, k = shape
    return [normal(m, k, dtype=dtype, device=device), normal(k, n, dtype=dtype, device=device, seed=1)]


def _our(name: str) -> Callable[[], Work]:
    def made() -> Work:
        return getattr(importlib.import_module(f"solutions.kernels.{name}"), name)

    return made


def _liger(name: str, call: Callable[[Any], Work]) -> Callable[[], Work]:
    def made() -> Work:
        return call(importlib.import_module(f"liger_kernel.ops.{name}"))

    return made


def _steady(aim: float) -> Callable[[Shape], float]:
    return lambda shape: aim


def _by_columns(shape: Shape) -> float:
    return 0.95 if shape[-1] >= 4096 else 0.85


def _planned(*plan: int) -> Callable[[], Work]:
    def made() -> Work:
        ours = importlib.import_module("solutions.kernels.cross_entropy")
        return lambda logits, target: ours.cross_entropy(logits, target, plan=ours.Plan(*plan))

    return made


CROSS_ENTROPY_PLANS = ((8192, 16, 1), (8192, 8, 3), (4096, 8, 3), (16384, 16, 2))
ROWS = ((16384, 4096), (65536, 1024), (8192, 8192))
OPS = {
    op.name: op
    for op in (
        Op(
            "add",
            sizes=((16384, 4096), (65536, 4096)),
            dry=(4, 64),
            inputs=_same(2),
            ours=_our("add"),
            eager=lambda x, y: x + y,
            passes=[Pass("forward", 3, _steady(0.95))],
        ),
        Op(
            "softmax",
            sizes=ROWS,
            dry=(8, 64),
            inputs=_same(1),
            ours=_our("softmax"),
            eager=lambda x: torch.softmax(x, -1),
            liger=_liger("softmax", lambda m: m.LigerSoftmaxFunction.apply),
            passes=[Pass("forward", 2, _by_columns)],
        ),
        Op(
            "rmsnorm",
            sizes=ROWS,
            dry=(8, 64),
            inputs=_rows(1),
            ours=_our("rmsnorm"),
            eager=lambda x, weight: F.rms_norm(x, weight.shape, weight, 1e-6),
            liger=_liger(
                "rms_norm",
                lambda m: lambda x, weight: m.LigerRMSNormFunction.apply(x, weight, 1e-6, 0.0, "llama", False),
            ),
            passes=[Pass("forward", 2, _by_columns), Pass("backward", 3, _steady(0.75))],
        ),
        Op(
            "swiglu",
            sizes=((16384, 4096), (8192, 14336)),
            dry=(4, 64),
            inputs=_same(2),
            ours=_our("swiglu"),
            eager=lambda gate, up: F.silu(gate) * up,
            liger=_liger("swiglu", lambda m: m.LigerSiLUMulFunction.apply),
            passes=[Pass("forward", 3, _steady(0.95)), Pass("both", 8, _steady(0.85))],
        ),
        Op(
            "cross_entropy",
            sizes=((8192, 32000), (4096, 128256)),
            dry=(8, 100),
            inputs=_logits,
            ours=_our("cross_entropy"),
            eager=lambda logits, target: F.cross_entropy(logits, target),
            liger=_liger(
                "cross_entropy",
                lambda m: lambda logits, target: m.LigerCrossEntropyFunction.apply(logits, target, None)[0],
            ),
            plans={f"ours, {b} by {w} warps, {s} stages": _planned(b, w, s) for b, w, s in CROSS_ENTROPY_PLANS},
            passes=[Pass("both", 2, _steady(0.62))],
        ),
        Op(
            "matmul",
            sizes=((8192, 8192, 8192), (4096, 4096, 4096), (8192, 14336, 4096)),
            dry=(64, 64, 64),
            inputs=_factors,
            ours=_our("matmul"),
            eager=lambda a, b: a @ b,
            passes=[Pass("forward", None, _steady(0.80))],
            flops=lambda shape: 2 * shape[0] * shape[1] * shape[2],
        ),
        Op(
            "attention",
            sizes=((4, 32, 4096, 128), (1, 32, 16384, 128), (4, 32, 4096, 64)),
            dry=(1, 2, 64, 16),
            inputs=_same(3),
            ours=_our("attention"),
            eager=lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            passes=[Pass("forward", None, _steady(0.60))],
            # Two products of seq × seq × d_head, of which the mask leaves half.
            flops=lambda shape: 2 * shape[0] * shape[1] * shape[2] ** 2 * shape[3],
        ),
        Op(
            "layernorm",
            sizes=ROWS,
            dry=(8, 64),
            inputs=_rows(2),
            ours=_our("layernorm"),
            eager=lambda x, weight, bias: F.layer_norm(x, weight.shape, weight, bias, 1e-5),
            liger=_liger(
                "layer_norm",
                lambda m: lambda x, weight, bias: m.LigerLayerNormFunction.apply(x, weight, bias, 1e-5),
            ),
            passes=[Pass("forward", 2, _by_columns), Pass("backward", 3, _steady(0.75))],
        ),
    )
}
"""In the order in which they are measured, so that what comes first is there when time runs out."""
