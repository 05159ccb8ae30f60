"""Lab 11: what is asked, given and run for a chain of elementwise operations that becomes one kernel."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Chain(Case):
    """x and y of `shape`, and a factor for each column. transposed: whether y lies in memory by columns."""

    shape: tuple[int, ...] = (48, 64)
    transposed: bool = False

    @property
    def ideal_bytes(self) -> int:
        """x, y and the factors read once, the result written once, in float32."""
        n = torch.Size(self.shape).numel()
        return 4 * (3 * n + self.shape[-1])


def chain_inputs(case: Chain, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """x, y: `shape`, wide enough that some of the sizes are cut off at 4; scale: (columns,)."""
    x = 3 * torch.randn(case.shape, generator=gen)
    y = 3 * torch.randn(case.shape, generator=gen)
    return {"x": x, "y": y, "scale": 0.5 + torch.rand(case.shape[-1], generator=gen)}


def drive_fuse(ans, case: Chain, tree: dict, stage) -> dict[str, object]:
    """The result of the compiled function."""
    torch.compiler.reset()
    x, y, scale = (tree[name].to(stage.device) for name in ("x", "y", "scale"))
    if case.transposed:
        y = y.mT.contiguous().mT
    try:
        with torch.no_grad(), _quiet(), stage.meter("compile"), stage.meter("generated"):
            out = torch.compile(ans.fused, dynamic=False)(x, y, scale)
    except torch._dynamo.exc.TorchRuntimeError:
        with torch.no_grad():
            ans.fused(x.clone(), y.clone(), scale.clone())  # raises the same error, with the answer's own line
        raise
    return {"out": out}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the log's copy of an error on fake tensors, which is raised as well."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


FUSE = Exercise(
    id="11-fuse",
    title="One kernel for a chain",
    points=3,
    minutes=25,
    difficulty=2,
    answers=(Answer("fused"),),
    public=(Chain(), Chain((5, 33)), Chain((3, 8, 40)), Chain((24, 36), transposed=True)),
    inputs=chain_inputs,
    drive=drive_fuse,
    meters=("compile", "generated"),
    # Inductor is loaded at the first graph, seconds on a busy machine.
    run=Run(wall_s=60.0),
)
