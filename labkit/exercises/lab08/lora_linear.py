"""Lab 08: a linear layer with a low-rank update. What is asked, given and run.

What is true of it is not here.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from labkit.spec import Answer, Case, Exercise

N_ROWS = 6
N_DROPPED_ROWS = 400
OBSERVED = (
    "trainable",
    "keeps_base",
    "initial_B",
    "initial",
    "y",
    "grads",
    "merged_weight",
    "merge_recorded",
    "merged",
    "merged_grad",
    "merged_twice",
    "unmerged_weight",
    "unmerged",
    "later_weight",
    "moved_weight",
    "neighbour_weight",
    "trainable_after",
    "initial_A",
    "dropped",
    "draws_again",
    "placed",
)


@dataclass(frozen=True)
class Layer(Case):
    """A layer of n_in to n_out features. forward_only: one forward pass is run and no more."""

    n_in: int = 12
    n_out: int = 8
    rank: int = 4
    alpha: float = 8.0
    dropout: float = 0.0
    bias: bool = True
    forward_only: bool = False
    dtype: str = "float32"

    @property
    def scale(self) -> float:
        return self.alpha / self.rank


def layer_inputs(case: Layer, gen: torch.Generator) -> dict[str, object]:
    """weight (n_out, n_in), bias, A (rank, n_in), B (n_out, rank), x (N_ROWS / 2, 2, n_in) and the gradient of y.

    Weight and factors are scaled so that outputs are of size 1. All are in the case's dtype.

    many (N_DROPPED_ROWS, n_in): an input without zeros, for the layers with dropout.
    """
    tree = {
        "weight": torch.randn(case.n_out, case.n_in, generator=gen) / case.n_in**0.5,
        "bias": torch.randn(case.n_out, generator=gen) if case.bias else None,
        "A": torch.randn(case.rank, case.n_in, generator=gen) / case.n_in**0.5,
        "B": torch.randn(case.n_out, case.rank, generator=gen) / case.rank**0.5,
        "x": torch.randn(N_ROWS // 2, 2, case.n_in, generator=gen),
        "grad": torch.randn(N_ROWS // 2, 2, case.n_out, generator=gen),
    }
    n_many = N_DROPPED_ROWS if case.dropout else 0
    tree["many"] = 1 + torch.rand(n_many, case.n_in, generator=gen)
    dtype = getattr(torch, case.dtype)
    return {name: None if tensor is None else tensor.to(dtype) for name, tensor in tree.items()}


def linear_of(tree: dict, device: torch.device | str = "cpu") -> nn.Linear:
    """An nn.Linear around the given weight and bias, which are not copied on a CPU."""
    n_out, n_in = tree["weight"].shape
    linear = nn.Linear(n_in, n_out, bias=tree["bias"] is not None, device="meta")
    linear.weight = nn.Parameter(tree["weight"].to(device))
    if tree["bias"] is not None:
        linear.bias = nn.Parameter(tree["bias"].to(device))
    return linear


def drive_layer(ans, case: Layer, tree: dict, stage) -> dict[str, object]:
    """What the layer is when new; with given factors; merged, merged again, unmerged and unmerged again.

    keeps_base: the layer given is the layer's base. merge_recorded: autograd goes back through merge(). draws_again: a
    second pass in training drops other elements. What could not be run, because the factors are not there, or was not
    asked for, is None.
    """
    # Merging writes into the weight. Where memory is watched nothing is merged, and a copy would be counted.
    weight = tree["weight"] if case.forward_only else tree["weight"].clone()
    base = linear_of({**tree, "weight": weight}, stage.device)
    layer = ans.LoRALinear(base, case.rank, case.alpha, case.dropout)
    x = tree["x"].to(stage.device)
    out: dict[str, object] = dict.fromkeys(OBSERVED)
    out["trainable"] = _trainable(layer)
    out["keeps_base"] = getattr(layer, "base", None) is base
    out["placed"] = _placed(ans, case)
    factors = {"lora_A": [case.rank, case.n_in], "lora_B": [case.n_out, case.rank]}
    have = {name: list(getattr(getattr(layer, name, None), "shape", ())) for name in factors}
    if have != factors:
        with stage.meter("memory"):
            return out
    layer.eval()
    if not case.forward_only:
        out["initial"] = layer(x)
    out["initial_A"], out["initial_B"] = layer.lora_A.detach().clone(), layer.lora_B.detach().clone()
    with torch.no_grad():
        _give_factors(layer, tree)
        layer(x)
        with stage.meter("memory"):
            out["y"] = layer(x)
    if case.forward_only:
        return out
    grad = tree["grad"].to(stage.device)
    # A second layer, in training mode, which is merged after the first one.
    neighbour = ans.LoRALinear(
        linear_of({**tree, "weight": tree["weight"].clone()}, stage.device), case.rank, case.alpha
    )
    with torch.no_grad():
        _give_factors(neighbour, tree)
        _merge_and_back(layer, neighbour, x, grad, out)
    out["trainable_after"] = _trainable(layer)
    layer.lora_A.grad = layer.lora_B.grad = None
    out["grads"] = {"x": _gradient_of_x(layer, x, grad), "lora_A": layer.lora_A.grad, "lora_B": layer.lora_B.grad}
    if case.dropout:
        layer.train()
        out["dropped"], again = (layer(tree["many"].to(stage.device)) for _ in range(2))
        out["draws_again"] = not torch.equal(out["dropped"], again)
    return out


def _trainable(layer: nn.Module) -> dict[str, list[int]]:
    return {name: list(p.shape) for name, p in layer.named_parameters() if p.requires_grad}


def _give_factors(layer: nn.Module, tree: dict) -> None:
    layer.lora_A.copy_(tree["A"])
    layer.lora_B.copy_(tree["B"])


def _placed(ans, case: Layer) -> dict[str, str]:
    """Where the factors lie, and in which dtype, around a layer in bfloat16 on the meta device."""
    base = nn.Linear(case.n_in, case.n_out, bias=case.bias, dtype=torch.bfloat16, device="meta")
    layer = ans.LoRALinear(base, case.rank, case.alpha, case.dropout)
    return {
        name: f"{p.dtype} on {p.device.type}".removeprefix("torch.")
        for name, p in layer.named_parameters()
        if name in ("lora_A", "lora_B")
    }


def _merge_and_back(
    layer: nn.Module, neighbour: nn.Module, x: torch.Tensor, grad: torch.Tensor, out: dict[str, object]
) -> None:
    def weight() -> torch.Tensor:
        return layer.base.weight.detach().clone()

    with torch.enable_grad():
        layer.merge()
    out["merge_recorded"] = layer.base.weight.grad_fn is not None
    if out["merge_recorded"]:
        # Or two backward passes below would share its graph, which the first one frees.
        layer.base.weight.detach_()
    out["merged_weight"], out["merged"] = weight(), layer(x)
    with torch.enable_grad():
        out["merged_grad"] = _gradient_of_x(layer, x, grad)
    neighbour.merge()
    out["neighbour_weight"] = neighbour.base.weight.detach().clone()
    layer.merge()
    out["merged_twice"] = weight()
    layer.unmerge()
    layer.unmerge()
    out["unmerged_weight"], out["unmerged"] = weight(), layer(x)
    # As if other weights had been loaded since the layer was made.
    layer.base.weight.copy_(2 * out["unmerged_weight"])
    layer.merge()
    layer.unmerge()
    out["later_weight"] = weight()
    layer.base.weight.copy_(out["unmerged_weight"])
    layer.merge()
    layer.base.weight.add_(1)
    layer.unmerge()
    out["moved_weight"] = weight()
    layer.base.weight.copy_(out["unmerged_weight"])


def _gradient_of_x(layer: nn.Module, x: torch.Tensor, grad: torch.Tensor) -> torch.Tensor | None:
    x = x.clone().requires_grad_()
    # Not y.backward(grad): given a tensor, PyTorch imports its symbolic shapes, which takes seconds.
    loss = (layer(x) * grad).sum()
    if loss.requires_grad:
        loss.backward()
    return x.grad


LORA_LINEAR = Exercise(
    id="08-lora-linear",
    title="A linear layer with a low-rank update",
    points=4,
    minutes=20,
    difficulty=2,
    answers=(Answer("LoRALinear"),),
    public=(
        Layer(),
        Layer(8, 8, 2, alpha=3.0, bias=False),
        Layer(5, 9, 1, alpha=4.0),
        Layer(256, 256, 4, alpha=4.0),
        Layer(6, 24, 12, alpha=6.0, dropout=0.25),
        Layer(12, 8, 4, alpha=4.0, forward_only=True, dtype="bfloat16"),
    ),
    inputs=layer_inputs,
    drive=drive_layer,
    meters=("memory",),
    forbids=(
        "peft.get_peft_model",
        "peft.inject_adapter_in_model",
        "peft.LoraModel",
        "peft.tuners.LoraModel",
        "peft.tuners.lora.LoraModel",
        "peft.tuners.lora.Linear",
        "peft.tuners.lora.LoraLayer",
        "peft.tuners.lora.layer.Linear",
        "peft.tuners.lora.layer.LoraLayer",
        "peft.tuners.lora.layer.dispatch_default",
    ),
)
