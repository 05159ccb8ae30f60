"""Lab 01: the bytes of a model's states, counted on the tensors of a real optimizer, and the usual slips."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch

from labkit.exercises.lab01.model_state_bytes import PARTS, States
from labkit.observe import known_settings
from labkit.oracles.calls import as_call
from labkit.spec import CANNOT_TELL, EXACT, CaseRun, GiB, Hint, KiB, MiB, Observation, Oracle, Tolerance

FP32, FP16, BF16 = torch.float32, torch.float16, torch.bfloat16
DTYPES: dict[str, tuple[torch.dtype, torch.dtype | None, torch.dtype]] = {
    "fp32": (FP32, None, FP32),
    "amp": (FP32, None, FP32),
    "fp16_master": (FP16, FP32, FP16),
    "huggingface": (FP16, FP32, FP32),
    "bf16": (BF16, None, BF16),
}
"""Of weights, master copy and gradients in each recipe."""

LIBRARY: dict[str, tuple[Callable[[list[torch.Tensor]], torch.optim.Optimizer], ...]] = {
    "sgd": (lambda params: torch.optim.SGD(params, foreach=False),),
    "momentum": (lambda params: torch.optim.SGD(params, momentum=0.9, foreach=False),),
    "adamw": (lambda params: torch.optim.AdamW(params, foreach=False),),
    "adam8bit": (lambda params: torch.optim.AdamW(params, foreach=False),),
    "adafactor": (lambda params: torch.optim.Adafactor(params, foreach=False),),
}
LIBRARY["adafactor_momentum"] = (*LIBRARY["adafactor"], *LIBRARY["momentum"])
"""PyTorch's optimizers whose states, taken together, are those of each name. The 8-bit Adam has AdamW's in one byte."""


@functools.lru_cache(maxsize=64)
@known_settings()
def held(case: States) -> dict[str, int]:
    """Bytes of weights, master copy and gradients made as tensors, and of the states after one step of the library."""
    weights, master, gradients = DTYPES[case.recipe]
    n_elements = sum(math.prod(shape) for shape in case.shapes)
    states = [
        state
        for make in LIBRARY[case.optimizer]
        for state in _states(make, [torch.zeros(shape, dtype=master or weights) for shape in case.shapes])
    ]
    one_byte = case.optimizer == "adam8bit"
    return {
        "weights": n_elements * weights.itemsize,
        "master": n_elements * master.itemsize if master else 0,
        "gradients": n_elements * gradients.itemsize,
        "optimizer": sum(state.numel() * (1 if one_byte else state.itemsize) for state in states),
    }


def _states(make: Callable, parameters: list[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors that an optimizer keeps for these parameters; single numbers such as the step are left out."""
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer = make(parameters)
    optimizer.step()
    kept = [value for state in optimizer.state.values() for value in state.values()]
    return [value for value in kept if isinstance(value, torch.Tensor) and value.dim()]


def updated(true: dict[str, int]) -> int:
    """Bytes of the weights that the optimizer updates."""
    return true["master"] or true["weights"]


def cut(found: float, true: float) -> bool:
    """Whether the fraction was cut off or rounded."""
    return not math.isclose(found, true) and found in (math.floor(true), *(round(true, digits) for digits in range(4)))


def part(name: str, wrong: Callable[[States, dict[str, int], int], object]) -> Callable[[CaseRun[States]], object]:
    """A diagnosis of one part that is wrong: `wrong` gets the case, the right parts and what came back for it."""

    def diagnose(run: CaseRun[States]) -> object:
        true, found = held(run.case), run.got["bytes"][name]
        return found != true[name] and wrong(run.case, true, found)

    return diagnose


def call_of(run: Observation) -> str:
    """Both calls that the case makes."""
    states = as_call("model_state_bytes", list(run.case.shapes), run.case.recipe, run.case.optimizer)
    return f"{states} and {as_call('gb_and_gib', run.tree['n_bytes'])}"


STATE_NAMES = ", ".join(f'"{name}"' for name in PARTS)

MODEL_STATE_BYTES = Oracle(
    id="01-model-state-bytes",
    expect=lambda run: {"bytes": held(run.case), "gb": run.tree["n_bytes"] / 1e9, "gib": run.tree["n_bytes"] / GiB},
    tolerance=lambda run: {"bytes": EXACT, "gb": Tolerance(rtol=1e-9), "gib": Tolerance(rtol=1e-9)},
    call=call_of,
    places={f"bytes.{name}": f'"{name}", in bytes' for name in PARTS} | {"gb": "number of GB", "gib": "number of GiB"},
    diagnose=(
        Hint(
            lambda run: not isinstance(run.got["bytes"], dict) or set(run.got["bytes"]) != set(PARTS),
            f"model_state_bytes returns a dict with the keys {STATE_NAMES}, each a whole number of bytes; a part that "
            "does not exist is 0.",
        ),
        Hint(
            part("weights", lambda case, true, found: found == true["weights"] + true["master"]),
            'The master copy has a key of its own: "weights" is what the forward pass reads.',
        ),
        Hint(
            part(
                "optimizer",
                lambda case, true, found: (
                    found == true["optimizer"] + true["master"] and (case.optimizer == "adamw" or CANNOT_TELL)
                ),
            ),
            'The master copy of the weights belongs under "master". Under "optimizer" count only what the optimizer\'s '
            "row of the table says that it keeps.",
        ),
        Hint(
            part("master", lambda case, true, found: found == 0),
            "No master weights: this recipe updates an fp32 copy beside the 16-bit weights, 4 bytes a parameter.",
        ),
        Hint(
            part("master", lambda case, true, found: true["master"] == 0),
            "There is no master copy here: the weights themselves are what the optimizer updates.",
        ),
        Hint(
            part("gradients", lambda case, true, found: case.recipe == "huggingface" and found < true["gradients"]),
            "In this recipe gradients are float32, 4 bytes a parameter, though the weights have 16 bits.",
        ),
        Hint(
            part("gradients", lambda case, true, found: found in (2 * true["gradients"], true["gradients"] / 2)),
            "The gradients are in the wrong precision: autograd gives a gradient the dtype of its weight.",
        ),
        Hint(
            part("weights", lambda case, true, found: found / true["weights"] in (0.5, 1.5, 2)),
            "The weights are in the wrong precision, or there twice: count the tensor that the model holds, and not "
            "what a cast makes of it for a moment.",
        ),
        Hint(
            part(
                "optimizer",
                lambda case, true, found: (
                    case.optimizer == "adafactor" and found in (true["optimizer"] / n for n in (4, 2, 1 / 2))
                ),
            ),
            "Adafactor's numbers are counted right, their bytes are not: each has the dtype of the weights that the "
            "optimizer updates.",
        ),
        Hint(
            part(
                "optimizer",
                lambda case, true, found: (
                    found == {"adafactor": 1, "adafactor_momentum": 2}[case.optimizer] * updated(true)
                ),
            ),
            "Adafactor has no second moment for every element: of a matrix it keeps a number a row and one a column.",
        ),
        Hint(
            part(
                "optimizer",
                lambda case, true, found: (
                    case.optimizer == "adafactor_momentum" and abs(found - true["optimizer"]) == updated(true)
                ),
            ),
            "With momentum Adafactor remembers one more number for every element, no more and no less.",
        ),
        Hint(
            part(
                "optimizer",
                lambda case, true, found: (
                    case.optimizer.startswith("adafactor") and any(len(s) > 2 for s in case.shapes)
                ),
            ),
            "Beyond two axes Adafactor factors the last two only: a (d, c, m, n) tensor keeps (d, c, m) and (d, c, n).",
        ),
        Hint(
            part("optimizer", lambda case, true, found: case.optimizer.startswith("adafactor")),
            "Adafactor keeps one number a row and one a column of a matrix, but a vector has no rows to share: of that "
            "it keeps every element. With momentum there is one more number for every element.",
        ),
        Hint(
            part("optimizer", lambda case, true, found: case.optimizer == "adam8bit"),
            "8-bit Adam keeps both moments, in one byte each, whatever the weights are.",
        ),
        Hint(
            part(
                "optimizer",
                lambda case, true, found: (
                    case.optimizer.startswith("adam")
                    and found == true["optimizer"] / 2
                    # With a master copy, half the bytes may be two moments in 16 bits.
                    and (not true["master"] or CANNOT_TELL)
                ),
            ),
            "AdamW keeps two moments for every parameter, in the dtype of the weights that it updates.",
        ),
        Hint(
            part("optimizer", lambda case, true, found: case.optimizer in ("sgd", "momentum")),
            "Plain SGD remembers nothing from step to step; momentum is one number for every parameter, in the dtype "
            "of the weights that it updates.",
        ),
        Hint(
            part("optimizer", lambda case, true, found: found in (2 * true["optimizer"], true["optimizer"] / 2)),
            "The optimizer's states are in the wrong precision: they have the dtype of the weights that it updates, "
            "which is fp32 where there is a master copy.",
        ),
        Hint(
            lambda run: any(
                math.isclose(found, true / unit)
                for found, true in zip((run.got["bytes"][name] for name in PARTS), held(run.case).values(), strict=True)
                for unit in (1e3, KiB, 1e6, MiB, 1e9, GiB)
                if true
            ),
            "model_state_bytes returns bytes, not multiples of them such as MB, MiB, GB or GiB.",
        ),
        Hint(
            lambda run: run.got["gb"] == run.tree["n_bytes"] / GiB or run.got["gib"] == run.tree["n_bytes"] / 1e9,
            "GB and GiB are mixed up: a GB is 10**9 bytes, a GiB is 2**30, which is 7.4 % more.",
        ),
        Hint(
            lambda run: run.got["gib"] == run.tree["n_bytes"] / MiB or run.got["gb"] == run.tree["n_bytes"] / 1e6,
            "Those are MB or MiB. A GB is 10**9 bytes and a GiB is 2**30; 10**6 and 2**20 are a thousandth of that.",
        ),
        Hint(
            lambda run: cut(run.got["gb"], run.tree["n_bytes"] / 1e9) or cut(run.got["gib"], run.tree["n_bytes"] / GiB),
            "Return the two quotients as they are, neither rounded nor cut off.",
        ),
        Hint(
            lambda run: run.got["gib"] is None,
            "gb_and_gib returns two numbers, first the GB, then the GiB.",
        ),
    ),
)
