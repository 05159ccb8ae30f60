"""Lab 08, the layer with a low-rank update: peft's layer with the same weights, tolerances and budgets.

The factors that a new layer draws are judged by properties: any generator and any order of drawing will do.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.lora_linear import N_ROWS, OBSERVED, Layer, linear_of
from labkit.oracles.lab08.dropped import drops_the_updates_input
from labkit.oracles.lab08.lora_hints import LORA_HINTS, SEEN_BY_AUTOGRAD
from labkit.oracles.lab08.lora_mistakes import CLOSE, CLOSE_IN_BFLOAT16, starts_random
from labkit.spec import Budget, CaseRun, Oracle, Tolerance

_DECIDED_ELSEWHERE = Tolerance(atol=float("inf"))


def peft_layer(run: CaseRun[Layer]) -> nn.Module:
    """peft's own LoRA layer around the case's weight, with the case's factors, in eval mode."""
    from peft import LoraConfig, inject_adapter_in_model

    tree = run.tree
    config = LoraConfig(
        r=run.case.rank,
        lora_alpha=run.case.alpha,
        lora_dropout=run.case.dropout,
        target_modules=["linear"],
        bias="none",
    )
    model = nn.ModuleDict({"linear": linear_of({**tree, "weight": tree["weight"].clone()})})
    layer = inject_adapter_in_model(config, model)["linear"]
    with torch.no_grad():
        layer.lora_A["default"].weight.copy_(tree["A"])
        layer.lora_B["default"].weight.copy_(tree["B"])
    return layer.eval()


def expect(run: CaseRun[Layer]) -> dict[str, object]:
    """By the names of OBSERVED and in their order: a mistake in the forward pass is in all that comes after it.

    Properties judge the first factor and dropout, which are random: zeros stand for any values of the right shape.
    """
    case, tree = run.case, run.tree
    dtype = tree["weight"].dtype
    in_float32 = {name: None if part is None else part.float() for name, part in tree.items()}
    layer = peft_layer(replace(run, tree=in_float32))
    x = tree["x"].float().requires_grad_()
    y = layer(x)
    trainable = {"lora_A": [case.rank, case.n_in], "lora_B": [case.n_out, case.rank]}
    found: dict[str, object] = {
        "trainable": trainable,
        "keeps_base": True,
        "placed": dict.fromkeys(("lora_A", "lora_B"), "bfloat16 on meta"),
        "initial_A": torch.zeros_like(tree["A"]),
        "initial_B": torch.zeros_like(tree["B"]),
        "y": y.detach().to(dtype),
    }
    if case.dropout:
        found |= {"dropped": torch.zeros(len(tree["many"]), case.n_out), "draws_again": True}
    if not case.forward_only:
        (y * tree["grad"]).sum().backward()
        factors = {name: getattr(layer, name)["default"].weight.grad for name in ("lora_A", "lora_B")}
        layer.merge()
        merged = layer.base_layer.weight.detach()
        found |= {
            "initial": linear_of(tree)(tree["x"]).detach(),
            "grads": {"x": x.grad, **factors},
            "merged_weight": merged,
            "merge_recorded": False,
            "merged": y.detach(),
            "merged_grad": x.grad,
            "merged_twice": merged,
            "unmerged_weight": tree["weight"],
            "unmerged": y.detach(),
            "later_weight": 2 * tree["weight"],
            "moved_weight": tree["weight"] + 1,
            "neighbour_weight": merged,
            "trainable_after": trainable,
        }
    return {name: found.get(name) for name in OBSERVED}


def tolerance(run: CaseRun[Layer]) -> dict[str, Tolerance]:
    """A gradient of a factor is a sum over rows and outputs, larger than its result where terms cancel."""
    gradients = Tolerance(atol=1e-5 * max(1.0, run.case.scale) * (N_ROWS * run.case.n_out) ** 0.5, rtol=1e-4)
    close = CLOSE if run.case.dtype == "float32" else CLOSE_IN_BFLOAT16
    found = dict.fromkeys(OBSERVED, close) | dict.fromkeys(("grads", "merged_grad"), gradients)
    return found | {"initial_A": _DECIDED_ELSEWHERE, "dropped": _DECIDED_ELSEWHERE}


def forward_bytes(run: CaseRun[Layer]) -> float:
    """Four copies of the input, of the rank-sized middle and of the output: not one matrix of n_out x n_in."""
    return 4 * N_ROWS * 4 * (run.case.n_in + run.case.rank + run.case.n_out) + 4096


LORA_LINEAR = Oracle(
    id="08-lora-linear",
    expect=expect,
    tolerance=tolerance,
    judge=(starts_random, drops_the_updates_input, inputs_untouched),
    call=lambda run: (
        f"LoRALinear(nn.Linear({run.case.n_in}, {run.case.n_out}, bias={run.case.bias}), rank={run.case.rank}, "
        f"alpha={run.case.alpha:g}, dropout={run.case.dropout:g}), in {run.case.dtype}"
    ),
    places={
        "initial": "output of a new layer",
        "initial_A": "lora_A of a new layer",
        "initial_B": "lora_B of a new layer",
        "y": "output",
        "grads.x": "gradient of x",
        "grads.lora_A": "gradient of lora_A",
        "grads.lora_B": "gradient of lora_B",
        "merged_weight": "base.weight after merge()",
        "merge_recorded": "answer to whether autograd has recorded merge()",
        "merged": "output after merge()",
        "merged_grad": "gradient of x after merge()",
        "merged_twice": "base.weight after a second merge()",
        "unmerged_weight": "base.weight after unmerge()",
        "unmerged": "output after unmerge()",
        "later_weight": "base.weight after other weights were loaded, merged and unmerged",
        "moved_weight": "base.weight where it was changed between merge() and unmerge()",
        "neighbour_weight": "base.weight of a second layer after its merge()",
        "trainable": "parameters that train",
        "trainable_after": "parameters that train after merge() and unmerge()",
        "keeps_base": "answer to whether self.base is the layer that was given",
    },
    axis="shapes, ranks, alphas, dropout and dtypes",
    budgets=(
        Budget(
            "peak_bytes",
            forward_bytes,
            "The forward pass formed a matrix as large as the weight. Multiply x by lora_A first and the result, which "
            "has rank columns, by lora_B: never lora_B by lora_A.",
        ),
    ),
    errors={"Cannot assign non-leaf Tensor to parameter 'weight'": SEEN_BY_AUTOGRAD},
    diagnose=LORA_HINTS,
)
