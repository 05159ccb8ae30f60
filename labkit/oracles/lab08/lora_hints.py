"""Lab 08, the layer with a low-rank update: the hints, from the specific to the general.

Most conditions stand here, beside their text; the longer ones are in lora_mistakes.py and dropped.py.
"""

from __future__ import annotations

import torch

from labkit.oracles.lab08.dropped import drops_the_updates_input, drops_together, kept_at, mask_of
from labkit.oracles.lab08.lora_mistakes import (
    gradient_is,
    near,
    right,
    scaled_by_alpha,
    scaled_otherwise,
    starts_random,
    weight_with,
    without_scale,
    y_with,
)
from labkit.spec import Hint

SEEN_BY_AUTOGRAD = (
    "Autograd sees merge() change the weight, which then depends on the factors and keeps a graph in memory. Change it "
    "under torch.no_grad() or through .data."
)
LORA_HINTS = (
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
        lambda run: near(run.got["unmerged_weight"], run.tree["weight"]) and near(run.got["unmerged"], y_with(run, 0)),
        "After unmerge() the update is gone from the output as well: reset the flag, so that forward adds it.",
    ),
    Hint(
        lambda run: run.got["merge_recorded"],
        SEEN_BY_AUTOGRAD,
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
            near(run.got["later_weight"], 2 * run.tree["weight"]) and near(run.got["moved_weight"], run.tree["weight"])
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
)
