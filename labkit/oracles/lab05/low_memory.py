"""Lab 05: what is true of backpropagation that keeps only the input, and what the usual mistakes look like."""

from __future__ import annotations

from typing import Any

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab05.low_memory import SMALL, Layer, Tower, run_tower, small_inputs
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, Oracle, Tolerance

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


def expected(run: CaseRun[Tower]) -> dict[str, Any]:
    found = run_tower(regular, run.case, run.tree, torch.device("cpu"))
    small = run_tower(regular, SMALL, small_inputs(), torch.device("cpu"))
    return {**found, "forwards": wanted_forwards(run.case), "second_dx": small["dx"], "with_graph": False}


def peak_bytes(run: CaseRun[Tower]) -> float:
    """A fixed number of activations, whatever the depth, and the parameters' gradients."""
    return N_ACTIVATIONS * run.case.x_bytes + 2 * run.case.parameter_bytes + SLACK_BYTES


def tolerances(run: CaseRun[Tower]) -> dict[str, Tolerance]:
    """float32, summed in whatever order; the loss is a mean of signed numbers."""
    return {
        "loss": Tolerance(atol=1e-6, rtol=1e-4),
        "dx": Tolerance(atol=1e-8, rtol=1e-4),
        "grads": Tolerance(atol=1e-6, rtol=1e-4),
        "second_dx": Tolerance(atol=1e-6, rtol=1e-4),
    }


def without_gradients(got: dict) -> list[int]:
    """The layers whose parameters got none."""
    return [index for index, layer in enumerate(got["grads"]) if None in layer.values()]


def same(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    return torch.allclose(got, wanted, rtol=1e-3, atol=1e-3 * float(wanted.abs().max()))


def whole_tails(run: CaseRun[Tower]) -> bool:
    """The last layer's gradients are there once for each layer."""
    right, mine = run.expected["grads"][-1], run.got["grads"][-1]
    return run.case.n_layers > 1 and all(same(mine[name], run.case.n_layers * right[name]) for name in right)


def from_ones(layers: list[Layer], x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The first layer's gradient by x, where its backward pass begins with ones."""
    leaf = x.detach().requires_grad_()
    out = layers[0](leaf)
    out.sum().backward()
    return out, leaf.grad


def without_the_gradient_from_above(run: CaseRun[Tower]) -> bool:
    """With one layer there is nothing above; the small first calls have two."""
    wrong = run_tower(from_ones, SMALL, small_inputs(), torch.device("cpu"))
    return same(run.got["second_dx"], wrong["dx"])


def first_layer_left_out(run: CaseRun[Tower]) -> object:
    only_the_first = without_gradients(run.got) == [0]
    return CANNOT_TELL if only_the_first and run.case.n_layers == 1 else only_the_first


def second_call_only(run: CaseRun[Tower]) -> bool:
    right = run.expected
    return same(run.got["dx"], right["dx"]) and not same(run.got["second_dx"], right["second_dx"])


def of_an_inner_layer(run: CaseRun[Tower]) -> bool:
    return run.got["loss"].shape == (run.case.n_rows, run.case.width)


LOW_MEMORY = Oracle(
    id="05-low-memory",
    expect=expected,
    tolerance=tolerances,
    call=lambda run: (
        f"low_memory_backward({run.case.n_layers} layers, x) with x of shape ({run.case.n_rows}, {run.case.width})"
    ),
    places={
        "dx": "gradient with respect to x",
        "second_dx": "gradient with respect to x in a second call with the same x",
        "forwards": "number of layers that ran",
        "with_graph": "answer to whether the loss still has a graph",
    },
    axis="depths and shapes",
    errors={
        "implicitly created only for scalar outputs": (
            "Only the last layer returns a scalar, so only there a backward pass may begin without a gradient. Start "
            "with that layer and count down. Every other one begins with the .grad that the layer after it has left "
            "in its detached input, which therefore needs requires_grad_()."
        ),
        "but they are 0D": (
            "A layer was called with the loss. The input of layer k comes from the layers before it, layers[:k], "
            "without layer k itself."
        ),
    },
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "peak_bytes",
            peak_bytes,
            "What is held grows with the number of layers. On the way to a layer's input record no graph "
            "(torch.no_grad), and keep nothing but the gradient between two layers. (If you call a function within "
            "itself, each call holds its variables until the inner one returns.)",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: of_an_inner_layer(run) and run.got["dx"].ndim == 0,
            "The loss comes first, and then the gradient with respect to x.",
        ),
        Hint(
            of_an_inner_layer,
            "The loss is what the last layer returned, and not the output of the one that ran last: keep it in the "
            "first turn.",
        ),
        Hint(
            lambda run: run.got["with_graph"],
            "The loss came back with its graph, which stays alive as long as the loss does: return loss.detach().",
        ),
        Hint(
            first_layer_left_out,
            "The first layer was never differentiated, so this is the gradient with respect to its output: count down "
            "to layer 0.",
        ),
        Hint(
            lambda run: without_gradients(run.got) != [],
            "The parameters got no gradient. torch.autograd.backward(out, gradient) adds to the .grad of every leaf, "
            "those inside the layer included; torch.autograd.grad returns only what it is asked for.",
        ),
        Hint(
            whole_tails,
            "The last layer's gradients were added once for each layer. Run layer k alone with a graph, and begin its "
            "backward pass with the gradient that the layer after it has left.",
        ),
        Hint(
            lambda run: run.got["forwards"] == run.case.n_layers,
            "Every layer ran once, so every activation was kept until its turn. Keep x alone, and start again from x "
            "for each layer.",
        ),
        Hint(
            lambda run: run.got["forwards"] == wanted_forwards(run.case) + run.case.n_layers,
            "One whole forward pass too many. The loss is the last layer's output, so the first pass to be "
            "differentiated gives it: there is no need to compute it beforehand.",
        ),
        Hint(
            lambda run: run.got["forwards"] == wanted_forwards(run.case) - run.case.n_layers,
            "The run that is differentiated should be a run of the layer by itself, on a detached input: its input "
            "takes k - 1 layers, and that run is the k-th.",
        ),
        Hint(
            lambda run: run.got["forwards"] < wanted_forwards(run.case),
            "Fewer layers ran than n(n + 1)/2, so an activation between was kept. That is a fine trade, the one that "
            "segments make; here keep x alone.",
        ),
        Hint(
            lambda run: run.got["forwards"] > wanted_forwards(run.case),
            "More layers ran than n(n + 1)/2. The input of layer k takes k - 1 layers, and one more run is "
            "differentiated.",
        ),
        Hint(
            without_the_gradient_from_above,
            "Each layer's backward pass began with ones: hand torch.autograd.backward the gradient that the layer "
            "after it has left in the .grad of its input.",
        ),
        Hint(
            second_call_only,
            "A second call with the same x gives another gradient: x itself was made to require one, and its .grad "
            "adds up. Detach it first.",
        ),
        Hint(
            lambda run: run.got["dx"] is None,
            "There is no gradient with respect to x: the detached input of each layer needs requires_grad_(True), and "
            "its .grad is what goes to the layer before.",
        ),
    ),
)
