"""Lab 08, adapters in a model: what peft does with the same model, and what the usual mistakes look like."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.inject import (
    NO_TARGET,
    OBSERVED,
    RANK,
    SCALE,
    Adapted,
    build,
    factor,
    is_of_adapter,
    logits_of,
)
from labkit.spec import CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-4, rtol=1e-4)
_MARK = ".default.weight"


def true_adapted(run: CaseRun[Adapted]) -> dict[str, object]:
    """A model with peft's adapters, or one that only is frozen."""
    if run.case.none:
        return {**dict.fromkeys(OBSERVED), "wrapped": [], "trainable": []}
    from peft import LoraConfig, inject_adapter_in_model

    seed, *values = run.tree["seeds"]
    config = LoraConfig(r=RANK, lora_alpha=RANK * SCALE, target_modules=list(run.case.targets))
    model = inject_adapter_in_model(config, build(run.case, seed)).eval()
    factors = {
        name.removesuffix(_MARK): p for name, p in model.named_parameters() if "lora_" in name and p.requires_grad
    }
    wrapped = sorted(name.removesuffix(".lora_A") for name in factors if name.endswith(".lora_A"))
    shapes = {name: tuple(p.shape) for name, p in factors.items()} | {f"{name}.lora_gain": (1,) for name in wrapped}
    expected: dict[str, object] = {"wrapped": wrapped, "trainable": sorted(shapes)}
    with torch.no_grad():
        for which, seed in zip(("second", "first"), reversed(values), strict=True):
            state = {name: factor(name, shape, seed) for name, shape in shapes.items()}
            for name, parameter in factors.items():
                # peft's layer has no gain: here it is part of the second factor.
                place, _, last = name.rpartition(".")
                parameter.copy_(state[name] * (state[f"{place}.lora_gain"] if last == "lora_B" else 1))
            expected[which] = logits_of(model, run.case, run.tree["tokens"])
    first, expected["state"] = expected["first"], state
    return {
        "wrapped": expected["wrapped"],
        "trainable": expected["trainable"],
        "first": first,
        "moved": expected["trainable"],
        "state": expected["state"],
        "fresh": first,
        "fresh_trains": expected["trainable"],
        "reordered": "nothing",
        "second": expected["second"],
        "back": first,
        "again": expected["second"],
        "refused": ["ValueError"] * 5,
        "kept": True,
        "apart": True,
    }


def tolerance(run: CaseRun[Adapted]) -> dict[str, Tolerance]:
    """float32 sums in another order, through a few layers."""
    return dict.fromkeys(("first", "second", "back", "again", "fresh"), CLOSE)


def near(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    return got.shape == wanted.shape and torch.allclose(got, wanted, atol=1e-3, rtol=1e-3)


def _ends_with_a_target(case: Adapted, name: str) -> bool:
    return any(name == target or name.endswith(f".{target}") for target in case.targets)


def _n_targets(case: Adapted) -> int:
    return sum(_ends_with_a_target(case, name) for name, _ in build(case, 0).named_modules())


def _is_lookalike(name: str) -> bool:
    return "lora_" in name.rpartition(".")[2] and not is_of_adapter(name)


def _is_alias(run: CaseRun[Adapted]) -> bool:
    """Loading the first state again had no effect: by then it held the second one's values."""
    got = run.got
    return near(got["back"], got["second"]) and not near(got["back"], got["first"]) and near(got["fresh"], got["first"])


INJECT = Oracle(
    id="08-inject",
    expect=true_adapted,
    tolerance=tolerance,
    judge=(inputs_untouched,),
    call=lambda run: (
        f"inject(a {run.case.family} model of {run.case.n_layers} layers, targets={run.case.targets!r}, wrap)"
    ),
    places={
        "wrapped": "list of wrapped layers",
        "trainable": "list of what trains after inject",
        "moved": "list of what a step changes",
        "state": "adapter_state",
        "first": "logits with adapter 1",
        "second": "logits with adapter 2",
        "back": "logits after adapter 1 was loaded again",
        "again": "logits after adapter 2 was loaded again",
        "fresh": "logits of a new model that loaded adapter 1",
        "fresh_trains": "list of what trains after load_adapter",
        "reordered": "answer of load_adapter to the same names in another order",
        "refused.0": "answer of load_adapter to a state that lacks a tensor",
        "refused.1": "answer of load_adapter to a state with a tensor too many",
        "refused.2": "answer of load_adapter to a tensor that is twice as wide",
        "refused.3": "answer of load_adapter to a single row in place of a matrix",
        "refused.4": "answer of load_adapter to a transposed tensor",
        "kept": "answer to whether a refused state leaves the model as it was",
        "apart": "answer to whether a loaded state stays as it is when the model changes",
    },
    axis="models, targets at any depth or none at all, and states that do not fit",
    errors={
        NO_TARGET: "If no module is a target, inject only freezes the model, and raises nothing.",
        "object has no attribute 'weight'": "wrap was given something that is no linear layer, because its name has a "
        "target somewhere in it. A target is the whole last part of a name, after a dot or alone.",
    },
    diagnose=(
        Hint(
            lambda run: len(run.got["wrapped"]) == 0 and not run.case.none,
            "No layer was replaced. setattr(parent, last part of the name, new layer) puts it in, where parent is "
            "model.get_submodule(everything before the last dot).",
        ),
        Hint(
            lambda run: not all(_ends_with_a_target(run.case, name) for name in run.got["wrapped"]),
            "Layers were wrapped that are not targets. A target is the whole last part of a name, after a dot or "
            "alone: `in` and endswith() also find it inside longer names.",
        ),
        Hint(
            lambda run: len(run.got["wrapped"]) < _n_targets(run.case),
            "Some targets were left out. They may lie in any layer and at any depth, also directly in the model, where "
            "the name has no dot.",
        ),
        Hint(
            lambda run: (
                any("lora_" not in name for name in run.got["trainable"])
                and (run.case.none or any("lora_" in name for name in run.got["trainable"]))
            ),
            "Parameters of the base model still train. Freeze all of the model first; only the adapters, which are "
            "put in afterwards, keep requires_grad.",
        ),
        Hint(
            lambda run: not run.case.none and not any("lora_" in name for name in run.got["trainable"]),
            "Nothing trains: the model was frozen after the adapters had been put in. Freeze first.",
        ),
        Hint(
            lambda run: (
                any(_is_lookalike(name) for name in (*run.got["trainable"], *run.got["state"]))
                and all("lora_" in name for name in run.got["state"])
            ),
            "A parameter called init_lora_weight is taken for one of the adapter's. The last part of the name has to "
            "begin with lora_: having it somewhere inside is not enough.",
        ),
        Hint(
            lambda run: any("lora_" not in name for name in run.got["state"]),
            "The state holds weights of the base model. A checkpoint of an adapter has the lora_ tensors alone, which "
            "is why it is small: go by their names, not by what trains at the moment.",
        ),
        Hint(
            lambda run: not run.got["state"] or set(run.got["state"]) != set(run.expected["trainable"]),
            "The names in the state should be those of model.named_parameters(), and all adapters should be there.",
        ),
        Hint(
            _is_alias,
            "The saved tensors are the live ones: when other values are loaded, they change with the model. Save "
            "copies, with detach().clone().",
        ),
        Hint(
            lambda run: not near(run.got["fresh"], run.got["first"]),
            "A new model with the saved adapter does not compute what the old one did: load_adapter has to copy every "
            "saved tensor into the parameter of that name.",
        ),
        Hint(
            lambda run: (
                near(run.got["fresh"], run.got["first"])
                and run.got["refused"] == ["ValueError", "ValueError", "nothing", "nothing", "nothing"]
            ),
            "The names are compared and the shapes are not: an adapter of another rank or width is accepted. Compare "
            "both, and raise ValueError.",
        ),
        Hint(
            lambda run: (
                near(run.got["fresh"], run.got["first"]) and run.got["refused"][2:4] == ["RuntimeError", "nothing"]
            ),
            "The shapes are left to copy_, which repeats a single row over a whole matrix and stops at others with a "
            "RuntimeError. Compare them yourself, and raise ValueError.",
        ),
        Hint(
            lambda run: run.got["refused"] == ["ValueError"] * 4 + ["nothing"],
            "A tensor of another shape with as many numbers is accepted. Compare shapes, not numel().",
        ),
        Hint(
            lambda run: near(run.got["fresh"], run.got["first"]) and "nothing" in run.got["refused"],
            "load_adapter accepts a state that does not fit: names missing, names that the model does not have, or "
            "another shape. strict=False hides all but the last, so compare the names yourself and raise ValueError.",
        ),
        Hint(
            lambda run: near(run.got["fresh"], run.got["first"]) and set(run.got["refused"]) != {"ValueError"},
            "load_adapter stops at a state that does not fit, but not with ValueError. Compare names and shapes before "
            "you use them, and raise it yourself.",
        ),
        Hint(
            lambda run: near(run.got["fresh"], run.got["first"]) and not run.got["kept"],
            "A state that was refused has changed the model: some tensors were copied before the misfit was found. "
            "First compare all of them, then copy.",
        ),
        Hint(
            lambda run: near(run.got["fresh"], run.got["first"]) and not run.got["apart"],
            "The model now holds the saved tensors themselves, so training it changes the saved adapter too. Copy the "
            "values, with copy_.",
        ),
        Hint(
            lambda run: run.got["fresh_trains"] != run.got["trainable"],
            "After load_adapter other parameters train than before. Copy the values into the parameters that are "
            "there, and leave requires_grad alone.",
        ),
        Hint(
            lambda run: run.got["reordered"] != "nothing",
            "The same names in another order are refused. Compare sets of names: dict.keys() ignores the order, and a "
            "list of names does not.",
        ),
        Hint(
            lambda run: not near(run.got["back"], run.got["first"]) or not near(run.got["again"], run.got["second"]),
            "After swapping adapters the model does not compute what it did with the same adapter before: load_adapter "
            "must replace all values, and adapter_state must not change any.",
        ),
    ),
)
