"""Lab 05: what is true of backpropagation that keeps only the input, and what the usual mistakes look like."""

from __future__ import annotations

from typing import Any

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab05.low_memory import Layer, Tower, run_tower
from labkit.spec import Budget, Hint, KiB, Oracle, Tolerance

N_ACTIVATIONS = 10
"""One layer's input, what it keeps inside, its output, and the gradients on the way through it."""
SLACK_BYTES = 64 * KiB


def regular(layers: list[Layer], x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The usual backpropagation, by PyTorch."""
    leaf = x.detach().requires_grad_()
    out = leaf
    for layer in layers:
        out = layer(out)
    out.backward()
    return out, leaf.grad


def wanted_forwards(case: Tower) -> int:
    """1 + 2 + ... + n: the k-th layer's input takes k - 1 of them, and one more is the run that is differentiated."""
    return case.n_layers * (case.n_layers + 1) // 2


def expected(case: Tower, tree: dict) -> dict[str, Any]:
    run = run_tower(regular, case, tree, torch.device("cpu"))
    return {**run, "forwards": wanted_forwards(case)}


def peak_bytes(case: Tower, tree: dict) -> float:
    """A fixed number of activations, whatever the depth, and the parameters' gradients."""
    return N_ACTIVATIONS * case.x_bytes + 2 * case.parameter_bytes + SLACK_BYTES


def tolerances(case: Tower, tree: dict) -> dict[str, Tolerance]:
    """float32, summed in whatever order; the loss is a mean of signed numbers."""
    return {
        "loss": Tolerance(atol=1e-6, rtol=1e-4),
        "dx": Tolerance(atol=1e-8, rtol=1e-4),
        "grads": Tolerance(atol=1e-6, rtol=1e-4),
    }


def no_parameter_gradients(case: Tower, tree: dict, got: dict) -> bool:
    return any(gradient is None for layer in got["grads"] for gradient in layer.values())


LOW_MEMORY = Oracle(
    id="05-low-memory",
    expect=expected,
    tolerance=tolerances,
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "peak_bytes",
            peak_bytes,
            "What is held grows with the number of layers. On the way to a layer's input record no graph "
            "(torch.no_grad), and let go of everything but the gradient between two layers.",
        ),
    ),
    diagnose=(
        Hint(
            no_parameter_gradients,
            "The parameters got no gradient. torch.autograd.backward(out, gradient) adds to the .grad of every leaf, "
            "those inside the layer included; torch.autograd.grad returns only what it is asked for.",
        ),
        Hint(
            lambda case, tree, got: got["forwards"] == case.n_layers,
            "Every layer ran once, so every activation was kept until its turn. Keep x alone, and start again from x "
            "for each layer.",
        ),
        Hint(
            lambda case, tree, got: got["forwards"] == wanted_forwards(case) + case.n_layers,
            "One whole forward pass too many. The loss is the last layer's output, so the first pass to be "
            "differentiated gives it: there is no need to compute it beforehand.",
        ),
        Hint(
            lambda case, tree, got: got["forwards"] == wanted_forwards(case) - case.n_layers,
            "The run that is differentiated should be a run of the layer by itself, on a detached input: its input "
            "takes k - 1 layers, and that run is the k-th.",
        ),
        Hint(
            lambda case, tree, got: got["forwards"] < wanted_forwards(case),
            "Fewer layers ran than n(n + 1)/2, so an activation between was kept. That is a fine trade, the one that "
            "segments make; here keep x alone.",
        ),
        Hint(
            lambda case, tree, got: got["forwards"] > wanted_forwards(case),
            "More layers ran than n(n + 1)/2. The input of layer k takes k - 1 layers, and one more run is "
            "differentiated.",
        ),
        Hint(
            lambda case, tree, got: got["dx"] is None,
            "There is no gradient by x: the detached input of each layer needs requires_grad_(True), and its .grad is "
            "what goes to the layer before.",
        ),
    ),
)
