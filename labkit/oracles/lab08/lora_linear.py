"""Lab 08, the layer with a low-rank update: peft's layer with the same weights, and what the usual mistakes look like.

The factors that a new layer draws are judged by properties: any generator and any order of drawing will do.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.lora_linear import N_ROWS, OBSERVED, Layer, linear_of
from labkit.oracles.lab08.dropped import drops_the_updates_input, drops_together, kept_at, mask_of
from labkit.oracles.lab08.lora_mistakes import (
    CLOSE,
    CLOSE_IN_BFLOAT16,
    gradient_is,
    near,
    right,
    scaled_by_alpha,
    scaled_otherwise,
    weight_with,
    without_scale,
    y_with,
)
from labkit.spec import Budget, CaseRun, Hint, Oracle, Tolerance

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


def starts_random(run: CaseRun) -> str | None:
    """The first factor of a new layer: random, of a size that neither drowns nor explodes."""
    size = float(run.got["initial_A"].std())
    if not 0.02 / run.case.n_in**0.5 < size < 3:
        return f"the values of a new lora_A have a standard deviation of {size:.3g}"
    return None


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
    diagnose=(
        Hint(
            lambda run: any("base" in name or name in ("weight", "bias") for name in run.got["trainable"]),
            "The base layer still trains. Switch it off in __init__, weight and bias: base.requires_grad_(False).",
        ),
        Hint(
            lambda run: run.got["trainable"].get("lora_A") == [run.case.n_in, run.case.rank],
            "The factors are stored transposed. As in peft, lora_A is (rank, n_in) and lora_B is (n_out, rank).",
        ),
        Hint(
            lambda run: set(run.got["trainable"]) != {"lora_A", "lora_B"} or run.got["y"] is None,
            "What trains should be two nn.Parameter called lora_A, of shape (rank, n_in), and lora_B, (n_out, rank), "
            "and nothing else.",
        ),
        Hint(
            lambda run: not run.got["keeps_base"],
            "self.base is not the layer that was given but a copy of it or nothing, so there are two weights or none "
            "to merge into. Write self.base = base.",
        ),
        Hint(
            lambda run: (run.got["initial_A"] == 0).all() and (run.got["initial_B"] == 0).all(),
            "Both factors start at zero, so the gradient of each, which has the other as a factor, is zero forever. "
            "Only lora_B starts at zero.",
        ),
        Hint(
            lambda run: (run.got["initial_A"] == 0).all() and run.got["initial_B"].any(),
            "The wrong factor starts at zero: by convention lora_A is random and lora_B zero.",
        ),
        Hint(
            lambda run: run.got["initial_B"].any(),
            "Both factors are random, so a new layer already differs from the one it wraps. Start lora_B at zero.",
        ),
        Hint(
            lambda run: (
                any(near(run.got["initial"], y_with(run, 0, biases)) for biases in (0, 2))
                and not near(run.got["initial"], y_with(run, 0))
            ),
            "The base's bias is missing or counts twice. self.base(x) already includes it: add the update to that.",
        ),
        Hint(
            without_scale,
            "The forward pass forgets the scale: the update is alpha / rank times B A x.",
        ),
        Hint(
            scaled_by_alpha,
            "The update is scaled by alpha alone; the scale is alpha / rank.",
        ),
        Hint(
            lambda run: run.case.alpha >= run.case.rank and near(run.got["y"], y_with(run, 0)),
            "The update is not in the output at all: add alpha / rank times B A x to what the base layer gives.",
        ),
        Hint(
            scaled_otherwise,
            "The update is scaled by another number than alpha / rank. Divide alpha by rank itself, with / and without "
            "a root, and multiply by the result once.",
        ),
        Hint(
            lambda run: run.case.dropout and not right(run, run.got["y"]),
            "Dropout acts in eval mode too. nn.Dropout follows train() and eval(); nn.functional.dropout has to be "
            "told with training=self.training.",
        ),
        Hint(
            lambda run: (
                near(run.got["merged_weight"], weight_with(run, 1.0))
                and not near(run.got["merged_weight"], weight_with(run, run.case.scale))
            ),
            "merge() forgets the scale: it adds alpha / rank times B A to the weight.",
        ),
        Hint(
            lambda run: near(run.got["merged_weight"], run.tree["weight"]) and right(run, run.got["merged"]),
            "merge() leaves base.weight as it was. Add the update to it in place, so that forward needs only the base.",
        ),
        Hint(
            lambda run: right(run, run.got["y"]) and near(run.got["merged"], y_with(run, 2 * run.case.scale)),
            "After merge() the update counts twice: it is in the weight, and forward still adds it.",
        ),
        Hint(
            lambda run: (
                near(run.got["merged_weight"], weight_with(run, run.case.scale))
                and near(run.got["merged_twice"], weight_with(run, 2 * run.case.scale))
            ),
            "A second merge() added the update again. Keep a flag, and do nothing when it is already merged.",
        ),
        Hint(
            lambda run: near(run.got["unmerged_weight"], weight_with(run, -run.case.scale)),
            "A second unmerge() subtracted the update again. Keep a flag, and do nothing when it is not merged.",
        ),
        Hint(
            lambda run: (
                near(run.got["merged_twice"], weight_with(run, run.case.scale))
                and not near(run.got["unmerged_weight"], run.tree["weight"])
            ),
            "unmerge() does not bring the old weight back: it must subtract exactly what merge() added.",
        ),
        Hint(
            lambda run: (
                near(run.got["unmerged_weight"], run.tree["weight"]) and near(run.got["unmerged"], y_with(run, 0))
            ),
            "After unmerge() the update is gone from the output as well: reset the flag, so that forward adds it.",
        ),
        Hint(
            lambda run: run.got["trainable_after"].keys() - run.got["trainable"].keys(),
            "After merge() or unmerge() a weight of the base trains: a new nn.Parameter has requires_grad. Change the "
            "old one in place, under torch.no_grad() or through .data.",
        ),
        Hint(
            gradient_is(lambda run: run.tree["weight"]),
            "The gradient of x lacks the part that comes through the update: a .detach(), .data or torch.no_grad() "
            "cuts x off on its way to lora_A.",
        ),
        Hint(
            gradient_is(lambda run: weight_with(run, run.case.scale) - run.tree["weight"]),
            "The gradient of x lacks the part that comes through the base. Its parameters are frozen, and that is "
            "enough: call it without torch.no_grad() or .detach().",
        ),
        Hint(
            lambda run: (
                not near(run.got["merged_grad"], run.tree["grad"] @ weight_with(run, run.case.scale))
                if isinstance(run.got["merged_grad"], torch.Tensor)
                else isinstance(run.got["merged"], torch.Tensor)
            ),
            "While the layer is merged, no gradient or a wrong one reaches x. The layers before it still train, so "
            "forward needs it: hide only merge() from autograd.",
        ),
        Hint(
            lambda run: any(run.got["grads"][name] is None for name in ("lora_A", "lora_B")),
            "No gradient reaches a factor: a .detach(), .data or torch.no_grad() cuts it off from the output.",
        ),
        Hint(
            lambda run: (
                near(run.got["merged_weight"], weight_with(run, run.case.scale))
                and near(run.got["neighbour_weight"], run.tree["weight"])
            ),
            "A second layer's merge() did nothing: another layer was merged by then, and it was in training mode. Keep "
            "the flag on self, and merge in either mode.",
        ),
        Hint(
            lambda run: (
                near(run.got["unmerged_weight"], run.tree["weight"])
                and not near(run.got["later_weight"], 2 * run.tree["weight"])
            ),
            "unmerge() brings back a weight from before merge() was called: others may have been loaded since. "
            "Subtract what merge() added.",
        ),
        Hint(
            lambda run: (
                near(run.got["later_weight"], 2 * run.tree["weight"])
                and near(run.got["moved_weight"], run.tree["weight"])
            ),
            "unmerge() copies back a weight that merge() had put aside. That is a second full weight in memory, and "
            "undoes whatever changed the weight in between: subtract alpha / rank times B A.",
        ),
        Hint(
            lambda run: run.case.dropout and (mask_of(run) - 1).abs().max() < 0.01,
            "In training nothing is dropped: apply dropout to the update's input before lora_A.",
        ),
        Hint(
            lambda run: run.case.dropout and run.got["draws_again"] is False,
            "Each pass in training drops the same elements. Draw a new mask in every forward, as nn.Dropout does.",
        ),
        Hint(
            kept_at(lambda p: 1.0),
            "The kept elements are not divided by 1 - p, so that the update is smaller in training than in eval.",
        ),
        Hint(
            kept_at(lambda p: 1 / p),
            "dropout is the probability of dropping an element, not of keeping it: the kept ones are divided by 1 - p.",
        ),
        Hint(
            lambda run: run.case.dropout and drops_together(mask_of(run) > 0.5),
            "Whole rows or columns of the input are dropped together. The mask has the shape of x, and each of its "
            "elements is drawn by itself.",
        ),
        Hint(
            lambda run: run.case.dropout and drops_the_updates_input(run),
            "Dropout belongs on the input of the update alone: the base layer sees all of x, and neither the "
            "rank-sized middle nor the output is dropped.",
        ),
        Hint(
            starts_random,
            "lora_A starts with random values of moderate size, such as kaiming_uniform_ draws: ones make its rows "
            "equal, and torch.empty holds whatever was in that memory.",
        ),
        Hint(
            lambda run: set(run.got["placed"].values()) != {"bfloat16 on meta"},
            "A factor does not have the dtype or the device of base.weight: torch.zeros by itself is float32 on the "
            "CPU. base.weight.new_zeros(n_out, rank) has both.",
        ),
    ),
)
