"""Lab 05: what is true of a training script without leaks, and what each leak looks like from outside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab05.find_the_leak import EVAL_SCALE, LEARNING_RATE, LeakyTraining
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, Oracle, Tolerance

SLACK_BYTES = 128 * KiB
N_HIDDEN_AT_PEAK = 6
"""One step: what the forward pass keeps of a hidden activation (2), as many gradients, and room for work."""


def hidden(values: list[torch.Tensor], x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """The hidden layer's output."""
    return scale * F.gelu(F.linear(x, values[0], values[1]))


def mse(values: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor, scale: float) -> torch.Tensor:
    return F.mse_loss(F.linear(hidden(values, x, scale), values[2], values[3]), y)


def descent(
    tree: dict, clear: bool = True, eval_scale: float = EVAL_SCALE, later_scale: float = 1.0
) -> dict[str, list[Any]]:
    """Gradient descent without a model, a .grad or a hook: the parameters at its end, and what may be noted on the way.

    losses and sizes are what is asked for. early: the validation losses before each step. trained: the batches' own.
    linear: magnitudes of the layer before the hidden one. signed: of the hidden layer's mean. idle: of its output in
    validation. Other arguments than the defaults are mistakes: gradients that add up, and the scale of the hidden layer
    in validation and in the training steps after the first, which follow from the mode.
    """
    values = [value.clone() for value in tree["parameters"]]
    sums = [torch.zeros_like(value) for value in values]
    names = ("losses", "sizes", "early", "trained", "linear", "signed", "idle")
    notes: dict[str, list[Any]] = {name: [] for name in names}

    def note(**numbers: torch.Tensor) -> None:
        for name, number in numbers.items():
            notes[name].append(float(number.detach()))

    for number, (x, y) in enumerate(zip(tree["x"], tree["y"], strict=True)):
        leaves, scale = [value.requires_grad_() for value in values], later_scale if number else 1.0
        loss, out = mse(leaves, x, y, scale), hidden(leaves, x, scale)
        note(early=mse(leaves, tree["x_val"], tree["y_val"], eval_scale), trained=loss, sizes=out.abs().mean())
        note(linear=F.linear(x, leaves[0], leaves[1]).abs().mean(), signed=out.mean().abs())
        gradients = torch.autograd.grad(loss, leaves)
        sums = [total + new if not clear else new for total, new in zip(sums, gradients, strict=True)]
        values = [value.detach() - LEARNING_RATE * total for value, total in zip(values, sums, strict=True)]
        note(
            losses=mse(values, tree["x_val"], tree["y_val"], eval_scale),
            idle=hidden(values, tree["x_val"], eval_scale).abs().mean(),
        )
    return {**notes, "parameters": values}


def expected(run: CaseRun[LeakyTraining]) -> dict[str, Any]:
    """What is asked for, and nothing left behind."""
    made, nothing = descent(run.tree), torch.zeros(run.case.n_steps, dtype=torch.int64)
    return {
        **{name: made[name] for name in ("losses", "sizes", "parameters")},
        "training_bytes": nothing,
        "validation_bytes": nothing,
        "hooks_left": 0,
    }


def tolerances(run: CaseRun[LeakyTraining]) -> dict[str, Tolerance]:
    """float32, a few steps. What is alive between steps is judged below: the last step's tensors may be."""
    near, any_number = Tolerance(atol=1e-4, rtol=1e-3), Tolerance(atol=math.inf)
    return {
        "losses": near,
        "sizes": near,
        "parameters": near,
        "training_bytes": any_number,
        "validation_bytes": any_number,
    }


FEW_STEPS = 2
"""So many may leave their tensors in variables: nothing can be seen to grow."""


def grows(case: LeakyTraining, n_bytes: torch.Tensor) -> bool:
    """More is alive after a step than what FEW_STEPS may leave in variables."""
    return case.n_steps > FEW_STEPS and bool(n_bytes.max() > 2.5 * case.hidden_bytes)


def leaks(name: str) -> Callable[[CaseRun[LeakyTraining]], object]:
    """A diagnosis: these bytes grow."""
    return lambda run: CANNOT_TELL if run.case.n_steps <= FEW_STEPS else grows(run.case, run.got[name])


def flat(run: CaseRun) -> str | None:
    """Nothing of a step outlives the next one."""
    for name, what in (("training_bytes", "training"), ("validation_bytes", "validation")):
        if grows(run.case, run.got[name]):
            after = ", ".join(f"{n_bytes / KiB:.0f}" for n_bytes in run.got[name].tolist())
            return f"hidden activations of {what} steps still alive after each step, in KiB: {after}"
    return None


def saved_bytes(run: CaseRun[LeakyTraining]) -> float:
    """The gradients of the last step and its last tensors, should a frame still hold them, and copies of the weights
    that the result consists of."""
    return 2 * run.case.parameter_bytes + 2 * run.case.hidden_bytes + SLACK_BYTES


def peak_bytes(run: CaseRun[LeakyTraining]) -> float:
    """One step, whatever the number of steps."""
    return 5 * run.case.parameter_bytes + N_HIDDEN_AT_PEAK * run.case.hidden_bytes + SLACK_BYTES


def never_cleared(run: CaseRun[LeakyTraining]) -> bool:
    """The parameters are those of a loop that adds all gradients up."""
    wrong = descent(run.tree, clear=False)["parameters"]
    return run.case.n_steps > 1 and all(
        torch.allclose(one, other, rtol=1e-3, atol=1e-4)
        for one, other in zip(run.got["parameters"], wrong, strict=True)
    )


def noted(name: str, mistake: str, **settings: Any) -> Callable[[CaseRun[LeakyTraining]], bool]:
    """A diagnosis: the list `name` is not the right one, but what the notes of a descent have under `mistake`."""

    def diagnose(run: CaseRun[LeakyTraining]) -> bool:
        right, wrong = descent(run.tree)[name], descent(run.tree, **settings)[mistake]
        return close(run.got[name], wrong) and not close(wrong, right)

    return diagnose


def close(values: list[float], others: list[float]) -> bool:
    return len(values) == len(others) and all(
        math.isclose(value, other, rel_tol=1e-3, abs_tol=1e-4) for value, other in zip(values, others, strict=True)
    )


def never_moved(run: CaseRun[LeakyTraining]) -> bool:
    return all(
        torch.equal(one, other) for one, other in zip(run.got["parameters"], run.tree["parameters"], strict=True)
    )


def numbers(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, int | float) for value in values)


def registered_in_every_step(run: CaseRun[LeakyTraining]) -> object:
    """Step k is noted by k hooks."""
    n_steps = run.case.n_steps
    return CANNOT_TELL if n_steps == 1 else len(run.got["sizes"]) == n_steps * (n_steps + 1) // 2


FIND_THE_LEAK = Oracle(
    id="05-find-the-leak",
    expect=expected,
    tolerance=tolerances,
    judge=(inputs_untouched, flat),
    call=lambda run: (
        f"train(model, optimizer, batches, validation) with {run.case.n_steps} batches of shape "
        f"({run.case.n_rows}, {run.case.width})"
    ),
    places={
        "losses": "list of validation losses",
        "losses.*": "validation loss of step {0}",
        "sizes": "list of mean magnitudes",
        "sizes.*": "mean magnitude of step {0}",
        "hooks_left": "number of hooks left on the model",
        "parameters": "parameters after training",
    },
    axis="numbers of steps and shapes",
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
            leaks("validation_bytes"),
            "The validation losses still hold their graphs, and with them every activation of the validation pass: run "
            "it under torch.no_grad(), and keep loss.item(). gc.collect() and empty_cache() free only what nothing "
            "refers to.",
        ),
        Hint(
            leaks("training_bytes"),
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
            lambda run: run.got["hooks_left"] < 0,
            "A hook is gone that was there before. Remove only your own: call remove() on the handle that its "
            "registration returned.",
        ),
        Hint(
            registered_in_every_step,
            "The hook is registered again in every step, so a later step is noted as often as there are hooks by then. "
            "Register it once, before the loop.",
        ),
        Hint(
            lambda run: run.got["hooks_left"] > 0,
            "The hook outlives train, and with it everything its closure refers to: keep what register_forward_hook "
            "returns, and remove() it at the end.",
        ),
        Hint(
            noted("losses", "losses", eval_scale=1.0),
            "The model validates in training mode. Keep model.eval() before the validation pass: layers such as "
            "dropout compute something else there.",
        ),
        Hint(
            lambda run: len(run.got["sizes"]) == 2 * run.case.n_steps,
            "The hook also ran in the validation pass: only the training steps' magnitudes are wanted.",
        ),
        Hint(
            lambda run: (
                close(run.got["losses"], descent(run.tree)["sizes"])
                and close(run.got["sizes"], descent(run.tree)["losses"])
            ),
            "The two lists are in the wrong order: the validation losses come first.",
        ),
        Hint(
            noted("losses", "early"),
            "The validation losses belong to the parameters before each step: take them after optimizer.step().",
        ),
        Hint(
            noted("losses", "trained"),
            "These are the losses of the training batches. Call the model on the validation batch after each step.",
        ),
        Hint(
            noted("losses", "losses", later_scale=EVAL_SCALE),
            "From the second step on the model trains in evaluation mode, because nothing switches back after the "
            "validation pass. Keep model.train(True) at the beginning of each step.",
        ),
        Hint(
            noted("sizes", "linear"),
            "These are the magnitudes of the layer before: the hidden layer's output is that of model[1].",
        ),
        Hint(
            noted("sizes", "signed"),
            "Positive and negative values cancel in a mean: take abs() first, and the mean of that.",
        ),
        Hint(
            noted("sizes", "idle"),
            "These are the magnitudes in the validation passes; those of the training passes are wanted.",
        ),
        Hint(
            lambda run: not numbers(run.got["losses"]) or not numbers(run.got["sizes"]),
            "train returns two lists of Python numbers, one a step: .item() takes the number out of a tensor.",
        ),
        Hint(
            lambda run: 0 < len(run.got["sizes"]) < run.case.n_steps,
            "There are fewer magnitudes than steps: train returns one number for each step, not one for all of them.",
        ),
        Hint(
            lambda run: not run.got["sizes"],
            "The magnitudes of the hidden layer are missing. They are part of the script: repair what records them, do "
            "not take it out.",
        ),
    ),
)
