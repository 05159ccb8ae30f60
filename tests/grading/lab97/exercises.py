"""Lab 97, first half; copied into the worker's tree by the tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Run

ORDER = (
    "add",
    "softmax",
    "total",
    "silu",
    "product",
)


@dataclass(frozen=True)
class Size(Case):
    n: int = 300


@dataclass(frozen=True)
class Rows(Case):
    n_rows: int = 3
    n_cols: int = 128


def _vectors(case, gen):
    return {name: torch.randn(case.n, generator=gen) for name in "xy"}


def _add(ans, case, tree, stage):
    with stage.meter("traffic"):
        return {"out": ans.add(tree["x"], tree["y"])}


def _softmax(ans, case, tree, stage):
    with stage.meter("traffic"), stage.meter("compiled"):
        return {"out": ans.softmax(tree["x"])}


def _total(ans, case, tree, stage):
    with stage.meter("traffic"):
        return {"out": ans.total(tree["x"])}


def _product(ans, case, tree, stage):
    with stage.meter("traffic"), stage.meter("compiled"):
        return {"out": ans.product(tree["a"], tree["b"])}


def _silu(ans, case, tree, stage):
    x = tree["x"].requires_grad_()
    with stage.meter("traffic"):
        out = ans.silu(x)
        out.backward(tree["y"])
    return {"out": out, "grad": x.grad}


ADD = Exercise(
    id="97-add",
    title="A masked sum",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("add"),),
    public=(Size(), Size(257)),
    inputs=_vectors,
    drive=_add,
    meters=("traffic",),
)
SOFTMAX = Exercise(
    id="97-softmax",
    title="Rows in one pass, and what the compiler makes of it",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("softmax"),),
    public=(Rows(),),
    inputs=lambda case, gen: {"x": torch.randn(case.n_rows, case.n_cols, generator=gen)},
    drive=_softmax,
    meters=("traffic", "compiled"),
    full_size=Rows(4096, 1024),
)
TOTAL = Exercise(
    id="97-total",
    title="A reduction by two kernels",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("total"),),
    public=(Size(1000),),
    inputs=_vectors,
    drive=_total,
    run=Run(wall_s=3),
    meters=("traffic",),
)
SILU = Exercise(
    id="97-silu",
    title="Forward and backward",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("silu"),),
    public=(Size(100),),
    inputs=_vectors,
    drive=_silu,
    meters=("traffic",),
)
PRODUCT = Exercise(
    id="97-product",
    title="A product of one tile, on the tensor cores",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("product"),),
    public=(Size(32),),
    inputs=lambda case, gen: {name: torch.randn(case.n, case.n, generator=gen).half() for name in "ab"},
    drive=_product,
    meters=("traffic", "compiled"),
)
