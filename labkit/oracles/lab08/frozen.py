"""Lab 08, the frozen 4-bit layer: torch's own linear over the same weight, and what the usual mistakes look like."""

from __future__ import annotations

import math

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.frozen import CHUNK_BYTES, Frozen, dequantizer
from labkit.spec import Budget, Hint, KiB, Oracle, Tolerance

SLACK_BYTES = 8 * KiB
"""For a handful of small tensors and for what Python keeps."""


def weight_of(tree: dict) -> torch.Tensor:
    return dequantizer(tree["code"])(tree["packed"], tree["scales"], tree["x"].dtype)


def true_frozen(case: Frozen, tree: dict) -> dict[str, object]:
    """saved_bytes is not compared: it is a budget, and tells the hints what was kept."""
    x, weight = tree["x"].clone().requires_grad_(), weight_of(tree)
    y = 2 * x
    for _ in range(case.n_layers):
        y = torch.nn.functional.linear(y, weight)
    (y * tree["grad"]).sum().backward()
    return {"y": y.detach(), "grad": x.grad, "saved_bytes": 0}


def tolerance(case: Frozen, tree: dict) -> dict[str, Tolerance]:
    """Values are of size 1: sums in any order, rounded to the dtype once or, in a product and a factor, a few times."""
    eps = torch.finfo(getattr(torch, case.dtype)).eps
    close = Tolerance(atol=16 * eps * 2**case.n_layers, rtol=8 * eps)
    return {"y": close, "grad": close, "saved_bytes": Tolerance(atol=math.inf)}


def kept_bytes(case: Frozen, tree: dict) -> float:
    """The output, and the packed weight and its scales once for each layer."""
    packed_bytes = tree["packed"].nbytes + tree["scales"].nbytes
    return tree["grad"].nbytes + case.n_layers * packed_bytes + SLACK_BYTES


def weight_bytes(case: Frozen, tree: dict) -> int:
    return case.n_in * case.n_out * tree["x"].element_size()


def peak_bytes(case: Frozen, tree: dict) -> float:
    """One weight in the dtype of x, what unpacking a piece takes, and eight tensors of each end's size."""
    unpacking_bytes = 24 * max(CHUNK_BYTES, case.n_in // 2)
    ends_bytes = 8 * (tree["x"].nbytes + tree["grad"].nbytes)
    return weight_bytes(case, tree) + unpacking_bytes + ends_bytes + case.n_layers * SLACK_BYTES


def near(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    return got.shape == wanted.shape and torch.allclose(got.float(), wanted.float(), rtol=0.05, atol=0.05)


def _one_square_layer(case: Frozen) -> bool:
    return case.n_in == case.n_out and case.n_layers == 1


def _keeps_more(case: Frozen, tree: dict, got: dict) -> float:
    """The bytes kept beyond what is allowed; below 0 where there is nothing to find fault with."""
    return got["saved_bytes"] - kept_bytes(case, tree)


FROZEN_NF4 = Oracle(
    id="08-frozen-nf4",
    expect=true_frozen,
    tolerance=tolerance,
    judge=(inputs_untouched,),
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
            "again in backward, and let it go at once.",
        ),
    ),
    diagnose=(
        Hint(
            lambda case, tree, got: got["grad"] is None,
            "No gradient reached x: backward returns one value for each argument of forward, the one of x first and "
            "None for the rest.",
        ),
        Hint(
            lambda case, tree, got: got["y"].dtype != tree["x"].dtype,
            "The result has another dtype than x: unpack the weight in x.dtype.",
        ),
        Hint(
            lambda case, tree, got: _one_square_layer(case) and near(got["y"], 2 * tree["x"] @ weight_of(tree)),
            "The weight is (n_out, n_in), as in nn.Linear: the forward pass is x @ weight.T.",
        ),
        Hint(
            lambda case, tree, got: _one_square_layer(case) and near(got["grad"], 2 * tree["grad"] @ weight_of(tree).T),
            "The gradient went through the weight the wrong way round: y = x @ weight.T has the gradient "
            "grad_y @ weight.",
        ),
        Hint(
            lambda case, tree, got: (
                near(got["y"], true_frozen(case, tree)["y"]) and not near(got["grad"], true_frozen(case, tree)["grad"])
            ),
            "The output is right and the gradient of x is not: it is grad_y @ weight, for any number of leading axes.",
        ),
        Hint(
            lambda case, tree, got: (
                _keeps_more(case, tree, got) > tree["x"].nbytes / 2 > case.n_layers * weight_bytes(case, tree) / 2
            ),
            "The input stays alive after the forward pass. It is needed for the gradient of the weight alone, and this "
            "weight has none.",
        ),
        Hint(
            lambda case, tree, got: _keeps_more(case, tree, got) > case.n_layers * weight_bytes(case, tree) / 2,
            "The weight in full precision stays alive after the forward pass. Keep the packed one and the scales, and "
            "unpack again in backward.",
        ),
    ),
)
