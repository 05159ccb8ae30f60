"""Lab 05: a policy that says which results a checkpoint keeps and which it computes again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from labkit.spec import Answer, Case, Exercise, Run

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
"""The matrix products of PyTorch, with and without a term that is added, by themselves and in batches."""
N_GROUPS = 4
"""How many matrices a batched product has."""
KEEP = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


@dataclass(frozen=True)
class Network(Case):
    """n_blocks blocks of the named products, each followed by operations on single elements; all tensors are
    (n_rows, width)."""

    products: tuple[str, ...] = PRODUCTS
    n_blocks: int = 3
    n_rows: int = 256
    width: int = 32

    @property
    def tensor_bytes(self) -> int:
        """One activation in float32."""
        return 4 * self.n_rows * self.width

    @property
    def n_products(self) -> int:
        return len(self.products) * self.n_blocks

    @property
    def parameter_bytes(self) -> int:
        return 4 * self.n_products * self.width * (self.width + 1)

    @property
    def product_flops(self) -> int:
        """One product forward: a multiplication and an addition for each of its terms."""
        return 2 * self.n_rows * self.width**2


def network_inputs(case: Network, gen: torch.Generator) -> dict[str, Any]:
    """x and probe (n_rows, width), and a weight and a bias for each product."""
    x, probe = torch.randn(2, case.n_rows, case.width, generator=gen).unbind()
    weights = [torch.randn(case.width, case.width, generator=gen) * case.width**-0.5 for _ in range(case.n_products)]
    biases = [0.3 * torch.randn(case.width, generator=gen) for _ in range(case.n_products)]
    return {"x": x.contiguous(), "probe": probe.contiguous(), "weights": weights, "biases": biases}


def product(name: str, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x @ weight, with bias where the product has one, in the form that PyTorch dispatches under this name."""
    if name == "mm":
        return torch.mm(x, weight)
    if name == "addmm":
        return torch.addmm(bias, x, weight)
    groups, weights = x.view(N_GROUPS, -1, x.shape[1]), weight.expand(N_GROUPS, -1, -1)
    out = torch.bmm(groups, weights) if name == "bmm" else torch.baddbmm(bias, groups, weights)
    return out.view_as(x)


def block(x: Tensor, names: Sequence[str], weights: Sequence[Tensor], biases: Sequence[Tensor]) -> Tensor:
    """Products, each with a gated GELU and a normalization behind it, and a residual sum."""
    for name, weight, bias in zip(names, weights, biases, strict=True):
        out = product(name, x, weight, bias)
        out = F.gelu(out) * torch.softmax(out, dim=1)
        x = x + F.layer_norm(out, out.shape[1:])
    return x


RunBlock = Callable[..., Tensor]
"""(fn, x) -> fn(x), with or without a checkpoint."""


def forward(run_block: RunBlock, case: Network, leaves: dict[str, Any]) -> Tensor:
    """All blocks, one after the other."""
    x, n = leaves["x"], len(case.products)
    for first in range(0, case.n_products, n):
        part = slice(first, first + n)
        mine = {"weights": leaves["weights"][part], "biases": leaves["biases"][part]}
        x = run_block(partial(block, names=case.products, **mine), x)
    return x


def leaves_of(tree: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """The inputs as leaves of a graph. The probe needs no gradient."""

    def leaf(value: Tensor) -> Tensor:
        return value.to(device).detach().requires_grad_()

    lists = {name: [leaf(value) for value in tree[name]] for name in ("weights", "biases")}
    return {"x": leaf(tree["x"]), "probe": tree["probe"].to(device), **lists}


def backward(out: Tensor, leaves: dict[str, Any]) -> dict[str, Any]:
    """The output and all gradients of (out * probe).sum()."""
    (out * leaves["probe"]).sum().backward()
    return {
        "out": out.detach(),
        "grads": {
            "x": leaves["x"].grad,
            "weights": [weight.grad for weight in leaves["weights"]],
            "biases": [bias.grad for bias in leaves["biases"]],
        },
    }


def plain(fn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """No checkpoint."""
    return fn(x)


@dataclass
class Decisions:
    """What a policy says in the forward pass: the names of the operations kept and dropped.

    strange: the types of what it returned that is no decision. True and False are, for PyTorch as well.
    """

    kept: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    strange: set[str] = field(default_factory=set)

    def note(self, op: Any, decision: Any) -> None:
        keeps = decision if isinstance(decision, bool) else decision in KEEP
        (self.kept if keeps else self.dropped).add(str(op).removeprefix("aten.").split(".")[0])
        if not isinstance(decision, bool | CheckpointPolicy):
            self.strange.add(type(decision).__name__)


def selective(policy: Callable[..., Any], decisions: Decisions) -> RunBlock:
    """A checkpoint under a policy."""

    def noting(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        decision = policy(context, op, *args, **kwargs)
        if not context.is_recompute:
            decisions.note(op, decision)
        return decision

    contexts = partial(create_selective_checkpoint_contexts, noting)
    return partial(checkpoint, use_reentrant=False, context_fn=contexts)


def keep_nothing(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    """The policy of an ordinary checkpoint."""
    return CheckpointPolicy.PREFER_RECOMPUTE


def ask_of_others(policy: Callable[..., Any], decisions: Decisions) -> None:
    """What the policy says of operations that no block has: dropout is one operation on a GPU, and several on a CPU."""
    aten, x = torch.ops.aten, torch.ones(2, 2)
    for op, *args in (
        (aten.native_dropout.default, x, 0.5, True),
        (aten.bernoulli_.float, x, 0.5),
        (aten.relu.default, x),
    ):
        decisions.note(op, policy(SelectiveCheckpointContext(is_recompute=False), op, *args))


def drive_selective(ans, case: Network, tree: dict, stage) -> dict[str, Any]:
    """out, gradients, and what the policy said of each operation in the forward pass.

    PyTorch is warmed up with a policy of our own; the student's first call is measured as well.
    """
    few = Network(case.products, 1, N_GROUPS, 4)
    some = network_inputs(few, torch.Generator().manual_seed(1))
    run_selective(keep_nothing, few, some, stage)
    leaves, decisions = leaves_of(tree, stage.device), Decisions()
    run_block = selective(ans.policy, decisions)
    with stage.meter("memory"):
        run_selective(ans.policy, few, some, stage)
        with stage.meter("ops"):
            with stage.meter("saved"):
                out = forward(run_block, case, leaves)
            made = backward(out, leaves)
    ask_of_others(ans.policy, decisions)
    return {**made, **{name: sorted(names) for name, names in vars(decisions).items()}}


def run_selective(policy: Callable[..., Any], case: Network, tree: dict, stage) -> None:
    """Forward and backward, nothing measured."""
    leaves = leaves_of(tree, stage.device)
    backward(forward(selective(policy, Decisions()), case, leaves), leaves)


SELECTIVE = Exercise(
    id="05-selective",
    title="Keep what is expensive, recompute what is cheap",
    points=3,
    minutes=12,
    difficulty=2,
    answers=(Answer("policy"),),
    public=(Network(), Network(("addmm", "mm"), 3), Network(("bmm", "addmm", "baddbmm"), 2, 192, 48)),
    inputs=network_inputs,
    drive=drive_selective,
    run=Run(wall_s=20.0),
    meters=("memory", "saved", "ops"),
)
