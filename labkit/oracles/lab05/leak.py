"""Lab 05: what is true of a training script without leaks, and what each leak looks like from outside."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab05.leak import LEARNING_RATE, Training
from labkit.spec import Budget, Hint, KiB, Observation, Oracle, Tolerance

SLACK_BYTES = 128 * KiB
N_HIDDEN_AT_PEAK = 6
"""One step: what the forward pass keeps of a hidden activation (2), as many gradients, and room for work."""


def expected(case: Training, tree: dict, clear: bool = True) -> dict[str, Any]:
    """Gradient descent written with torch.func: no model, no .grad, no hook. clear=False adds gradients up."""
    values = [value.clone() for value in tree["parameters"]]
    model = nn.Sequential(nn.Linear(case.width, case.n_hidden), nn.GELU(), nn.Linear(case.n_hidden, case.width))
    names = [name for name, _ in model.named_parameters()]

    def output(values: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (x,))

    losses, sizes, sums = [], [], [torch.zeros_like(value) for value in values]
    for x, y in zip(tree["x"], tree["y"], strict=True):
        leaves = [value.requires_grad_() for value in values]
        sizes.append(float(F.gelu(F.linear(x, leaves[0], leaves[1])).detach().abs().mean()))
        gradients = torch.autograd.grad(F.mse_loss(output(leaves, x), y), leaves)
        sums = [total + new if not clear else new for total, new in zip(sums, gradients, strict=True)]
        values = [value.detach() - LEARNING_RATE * total for value, total in zip(values, sums, strict=True)]
        losses.append(float(F.mse_loss(output(values, tree["x_val"]), tree["y_val"])))
    nothing = torch.zeros(case.n_steps, dtype=torch.int64)
    return {
        "losses": losses,
        "sizes": sizes,
        "parameters": values,
        "training_bytes": nothing,
        "validation_bytes": nothing,
        "hooks_left": 0,
    }


def tolerances(case: Training, tree: dict) -> dict[str, Tolerance]:
    """float32, a few steps. What is alive between steps is judged below: the last step's tensors may be."""
    close, any_number = Tolerance(atol=1e-4, rtol=1e-3), Tolerance(atol=math.inf)
    return {
        "losses": close,
        "sizes": close,
        "parameters": close,
        "training_bytes": any_number,
        "validation_bytes": any_number,
    }


def grows(case: Training, n_bytes: torch.Tensor) -> bool:
    """More is alive after a step than what two steps may leave in variables."""
    return case.n_steps > 2 and bool(n_bytes.max() > 2.5 * case.hidden_bytes)


def flat(run: Observation) -> str | None:
    """Nothing of a step outlives the next one."""
    for name, what in (("training_bytes", "training"), ("validation_bytes", "validation")):
        if grows(run.case, run.got[name]):
            after = ", ".join(f"{n_bytes / KiB:.0f}" for n_bytes in run.got[name].tolist())
            return f"hidden activations of {what} steps still alive after each step, in KiB: {after}"
    return None


def saved_bytes(case: Training, tree: dict) -> float:
    """The gradients of the last step and its last tensors, should a frame still hold them, and copies of the weights
    that the result consists of."""
    return 2 * case.parameter_bytes + 2 * case.hidden_bytes + SLACK_BYTES


def peak_bytes(case: Training, tree: dict) -> float:
    """One step, whatever the number of steps."""
    return 5 * case.parameter_bytes + N_HIDDEN_AT_PEAK * case.hidden_bytes + SLACK_BYTES


def never_cleared(case: Training, tree: dict, got: dict) -> bool:
    """The parameters are those of a loop that adds all gradients up."""
    wrong = expected(case, tree, clear=False)["parameters"]
    return case.n_steps > 1 and all(
        torch.allclose(one, other, rtol=1e-3, atol=1e-4) for one, other in zip(got["parameters"], wrong, strict=True)
    )


def never_moved(case: Training, tree: dict, got: dict) -> bool:
    return all(torch.equal(one, other) for one, other in zip(got["parameters"], tree["parameters"], strict=True))


def numbers(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, int | float) for value in values)


FIND_THE_LEAK = Oracle(
    id="05-find-the-leak",
    expect=expected,
    tolerance=tolerances,
    judge=(inputs_untouched, flat),
    budgets=(
        Budget(
            "saved_bytes",
            saved_bytes,
            "When train returned, tensors of its steps were still alive. gc.collect() and empty_cache() free only what "
            "nothing refers to: find who refers to them.",
        ),
        Budget(
            "peak_bytes",
            peak_bytes,
            "The peak grows with the number of steps, so something of every step is kept. Keep numbers, not tensors.",
        ),
    ),
    diagnose=(
        Hint(
            lambda case, tree, got: grows(case, got["validation_bytes"]),
            "The validation losses still hold their graphs, and with them every activation of the validation pass: run "
            "it under torch.no_grad(), and keep loss.item(). gc.collect() and empty_cache() free only what nothing "
            "refers to.",
        ),
        Hint(
            lambda case, tree, got: grows(case, got["training_bytes"]),
            "The hook's closure keeps the hidden layer's output of every training step. Keep the number that is wanted "
            "of it, output.detach().abs().mean().item(), and nothing else.",
        ),
        Hint(
            never_moved,
            "The parameters never moved: the gradients were cleared between backward and step.",
        ),
        Hint(
            never_cleared,
            "The gradients are never cleared: every step adds to those of all steps before. Call "
            "optimizer.zero_grad() before backward, or after step.",
        ),
        Hint(
            lambda case, tree, got: got["hooks_left"] > 0,
            "The hook outlives train, and with it everything its closure refers to: keep what register_forward_hook "
            "returns, and remove() it at the end.",
        ),
        Hint(
            lambda case, tree, got: len(got["sizes"]) == 2 * case.n_steps,
            "The hook also ran in the validation pass: only the training steps' magnitudes are wanted.",
        ),
        Hint(
            lambda case, tree, got: not numbers(got["losses"]) or not numbers(got["sizes"]),
            "train returns two lists of Python numbers, one a step: .item() takes the number out of a tensor.",
        ),
        Hint(
            lambda case, tree, got: len(got["sizes"]) < case.n_steps,
            "The magnitudes of the hidden layer are missing. They are part of the script: repair what records them, do "
            "not take it out.",
        ),
    ),
)
