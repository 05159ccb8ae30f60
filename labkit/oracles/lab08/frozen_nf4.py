"""Lab 08, the frozen 4-bit layer: torch's own linear over the same weight, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.frozen_nf4 import CHUNK_BYTES, Frozen, dequantizer
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, Oracle, Tolerance

SLACK_BYTES = 8 * KiB
"""For a handful of small tensors and for what Python keeps."""


def weight_of(tree: dict, layer: int = 0, code_of: int | None = None) -> torch.Tensor:
    """A layer's weight in the dtype of x, unpacked with its own code or with that of another layer."""
    code = tree["code"][layer if code_of is None else code_of]
    return dequantizer(code)(tree["packed"][layer], tree["scales"][layer], tree["x"].dtype)


def true_frozen(run: CaseRun[Frozen]) -> dict[str, object]:
    """saved_bytes and n_unpacked are not compared: they have limits, and tell the hints what was kept."""
    x = run.tree["x"].clone().requires_grad_()
    y = 2 * x
    for layer in range(run.case.n_layers):
        y = torch.nn.functional.linear(y, weight_of(run.tree, layer))
    (y * run.tree["grad"]).sum().backward()
    return {"y": y.detach(), "grad": x.grad, "unpacked_in": run.case.dtype, "n_unpacked": 0, "saved_bytes": 0}


def unpacks_again(runs: Sequence[CaseRun]) -> str | None:
    """The backward pass unpacks the weight of each layer; where it does not, the weight lay where no meter looks."""
    if all(run.got["n_unpacked"] >= run.case.n_layers for run in runs):
        return None
    return "the backward pass did not unpack every weight again"


unpacks_again.hint = (
    "The backward pass took the weight from somewhere else than dequantize. Keep the packed one and the scales, and "
    "unpack again in backward."
)


def tolerance(run: CaseRun[Frozen]) -> dict[str, Tolerance]:
    """Values are of size 1: sums in any order, rounded to the dtype once or, in a product and a factor, a few times."""
    eps = torch.finfo(getattr(torch, run.case.dtype)).eps
    close = Tolerance(atol=16 * eps * 2**run.case.n_layers, rtol=8 * eps)
    anything = Tolerance(atol=math.inf)
    return {"y": close, "grad": close, "saved_bytes": anything, "n_unpacked": anything}


def kept_bytes(run: CaseRun[Frozen]) -> float:
    """The output: the packed weights and their scales were there before."""
    return run.tree["grad"].nbytes + SLACK_BYTES


def weight_bytes(run: CaseRun[Frozen]) -> int:
    return run.case.n_in * run.case.n_out * run.tree["x"].element_size()


def peak_bytes(run: CaseRun[Frozen]) -> float:
    """One weight in the dtype of x, what unpacking a piece takes, and eight tensors of each end's size."""
    unpacking_bytes = 24 * max(CHUNK_BYTES, run.case.n_in // 2)
    ends_bytes = 8 * (run.tree["x"].nbytes + run.tree["grad"].nbytes)
    return weight_bytes(run) + unpacking_bytes + ends_bytes + run.case.n_layers * SLACK_BYTES


def near(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    return got.shape == wanted.shape and torch.allclose(got.float(), wanted.float(), rtol=0.05, atol=0.05)


def _only_the_gradient_is_wrong(run: CaseRun[Frozen]) -> bool:
    right = run.expected
    return near(run.got["y"], right["y"]) and not near(run.got["grad"], right["grad"])


def _gradient_back_through(run: CaseRun[Frozen], weight: Callable[[int], torch.Tensor]) -> torch.Tensor:
    grad = 2 * run.tree["grad"]
    for layer in reversed(range(run.case.n_layers)):
        grad = grad @ weight(layer)
    return grad


def _takes_the_last_layers(run: CaseRun[Frozen]) -> bool:
    """Every layer went back through the last one's weight, or through its own unpacked by the last one's code."""
    mixed = (lambda layer: weight_of(run.tree, -1), lambda layer: weight_of(run.tree, layer, code_of=-1))
    return run.case.n_layers > 1 and any(near(run.got["grad"], _gradient_back_through(run, one)) for one in mixed)


def _rounded(run: CaseRun[Frozen]) -> object:
    """The gradient is nearly right, and further off than its dtype explains; in 16 bits it need not be."""
    right, allowed = run.expected["grad"].float(), tolerance(run)["grad"]
    off = (run.got["grad"].float() - right).abs()
    if not off.norm() < 0.03 * right.norm():
        return False
    return bool((off > allowed.atol + allowed.rtol * right.abs()).any()) or CANNOT_TELL


def _transposed_forward(run: CaseRun[Frozen]) -> object:
    """Only a square weight can be taken the wrong way round."""
    if run.case.n_in != run.case.n_out:
        return CANNOT_TELL
    y = 2 * run.tree["x"]
    for layer in range(run.case.n_layers):
        y = y @ weight_of(run.tree, layer)
    return near(run.got["y"], y)


def _transposed_backward(run: CaseRun[Frozen]) -> object:
    if run.case.n_in != run.case.n_out:
        return CANNOT_TELL
    return near(run.got["grad"], _gradient_back_through(run, lambda layer: weight_of(run.tree, layer).T))


def _keeps(bytes_of_a_layer: Callable[[CaseRun[Frozen]], int]) -> Callable[[CaseRun[Frozen]], bool]:
    """A diagnosis: beside the output, every layer keeps about so much."""

    def when(run: CaseRun[Frozen]) -> bool:
        kept, wanted = run.got["saved_bytes"] - run.tree["grad"].nbytes, run.case.n_layers * bytes_of_a_layer(run)
        return 0.9 * wanted <= kept <= 1.1 * wanted + SLACK_BYTES

    return when


FROZEN_NF4 = Oracle(
    id="08-frozen-nf4",
    expect=true_frozen,
    tolerance=tolerance,
    judge=(inputs_untouched,),
    call=lambda run: (
        f"{run.case.n_layers} x FrozenNF4Linear.apply(x, packed, scales, dequantize), x {run.case.dtype} of shape "
        f"{tuple(run.tree['x'].shape)}, weight ({run.case.n_out}, {run.case.n_in})"
    ),
    places={"grad": "gradient of x", "unpacked_in": "dtype asked of dequantize"},
    axis="shapes, dtypes, layouts of x, and numbers of layers",
    judge_all=(unpacks_again,),
    budgets=(
        Budget(
            "saved_bytes",
            kept_bytes,
            "More stays alive after the forward pass than the packed weight and its scales, on ctx or elsewhere.",
        ),
        Budget(
            "peak_bytes",
            peak_bytes,
            "More than one weight in full precision was alive at a time: unpack it where it is used, in forward and "
            "again in backward, and keep no reference to it.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: run.got["grad"] is None,
            "No gradient reached x: backward returns one value for each argument of forward, the one of x first and "
            "None for the rest.",
        ),
        Hint(
            lambda run: run.got["y"].dtype != run.tree["x"].dtype,
            "The result has another dtype than x: unpack the weight in x.dtype.",
        ),
        Hint(
            _transposed_forward,
            "The weight is (n_out, n_in), as in nn.Linear: the forward pass is x @ weight.T.",
        ),
        Hint(
            _transposed_backward,
            "The gradient went through the weight the wrong way round: y = x @ weight.T has the gradient "
            "grad_y @ weight.",
        ),
        Hint(
            lambda run: _only_the_gradient_is_wrong(run) and _takes_the_last_layers(run),
            "In a chain of layers, each went back through what belongs to the last one. What is kept on the class or "
            "in a global is overwritten by the next layer: keep it on ctx.",
        ),
        Hint(
            _only_the_gradient_is_wrong,
            "The output is right and the gradient of x is not: it is grad_y @ weight, for any number of leading axes.",
        ),
        Hint(
            _rounded,
            "The gradient is nearly right, but rounded further than its dtype does. Unpack the weight again in "
            "grad_y.dtype, and keep no rounded copy of it.",
        ),
        Hint(
            lambda run: near(run.got["y"], run.expected["y"]) and run.got["unpacked_in"] != run.case.dtype,
            "A weight was unpacked in another dtype than that of x: converted afterwards, two of them are alive. Ask "
            "dequantize for x.dtype, and in backward for grad_y.dtype.",
        ),
        Hint(
            _keeps(lambda run: run.tree["x"].nbytes),
            "The input stays alive after the forward pass. It is needed for the gradient of the weight alone, and this "
            "weight has none.",
        ),
        Hint(
            _keeps(weight_bytes),
            "The weight in full precision stays alive after the forward pass. Keep the packed one and the scales, and "
            "unpack again in backward.",
        ),
    ),
)
