"""Lab 12: what is true of any dropout in a fused kernel, whichever mask it drew.

Any mask will do that is random, follows the seed and comes back in the backward pass. How the usual mistakes look is in
dropout_mistakes.py.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab12.bias_gelu_dropout import Dropped
from labkit.exercises.lab12.shapes import dout_of
from labkit.spec import CaseRun

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
SMALL = 1e-3
"""A value below tells too little about whether it was dropped."""
SIGMAS = 5
ENOUGH = 100
"""Pairs of elements that tell something about a mask."""
SIGMAS_ALIKE = 7
"""More than SIGMAS: many distances are looked at, and the pairs of one distance depend on each other a little."""
MOST_ALIKE = 0.97
"""Of two independent masks with p from 0.1 to 0.9, fewer elements than this agree."""


def activated(tree: dict, kind: str = "none") -> Tensor:
    """gelu(x + bias) in float64."""
    return F.gelu(tree["x"].double() + tree["bias"].double(), approximate=kind)


def kept(run: CaseRun[Dropped], out: Tensor) -> tuple[Tensor, Tensor]:
    """(which elements were kept, which of them are decided), both boolean."""
    values = activated(run.tree)
    added = out.double() - run.tree["y"].double()
    return added.abs() > values.abs() / 2, values.abs() > SMALL


def says(hint: str | None) -> Callable:
    """Give a property its hint."""

    def give(holds: Callable[[CaseRun], str | None]) -> Callable[[CaseRun], str | None]:
        holds.hint = hint
        return holds

    return give


@says(None)
def values_are_right(run: CaseRun) -> str | None:
    """Each element is y, or y plus the activation divided by 1 - p; the hints look at what it is instead."""
    for name in ("out", "other", "next"):
        out = run.got[name]
        if out.shape != run.tree["x"].shape or out.dtype != run.tree["x"].dtype:
            return f"{name} should have the shape and dtype of x"
        is_kept, is_decided = kept(run, out)
        expected = run.tree["y"].double() + is_kept * activated(run.tree) / (1 - run.case.p)
        bad = ~torch.isclose(out.double(), expected, **CLOSE) & is_decided
        if bad.any():
            at = [int(index) for index in bad.nonzero()[0]]
            return (
                f"{int(bad.sum()):,} elements of {name} are neither y nor y + gelu(x + bias) / (1 - p); first at {at}"
            )
    return None


@says("An element is kept with probability 1 - p: keep where the random number is at least p.")
def share_is_right(run: CaseRun) -> str | None:
    is_kept, is_decided = kept(run, run.got["out"])
    n, p = int(is_decided.sum()), run.case.p
    share = float(is_kept[is_decided].double().mean())
    if abs(share - (1 - p)) <= SIGMAS * (p * (1 - p) / n) ** 0.5:
        return None
    return f"{share:.1%} of the elements are kept, where p = {p:g} should keep about {1 - p:.1%}"


@says(
    "tl.rand gives the same number for the same seed and offset. Give each element an offset of its own, counted "
    "through the whole matrix and not from the start of its block."
)
def mask_does_not_repeat(run: CaseRun) -> str | None:
    """Elements at some distance are not kept or dropped together more often than chance has it."""
    is_kept, is_decided = (one.reshape(-1) for one in kept(run, run.got["out"]))
    share = float(is_kept[is_decided].double().mean())
    by_chance = share**2 + (1 - share) ** 2
    for shift in sorted({run.case.n_cols, *range(1, 17), *(2**n for n in range(5, 12))}):
        both = is_decided[shift:] & is_decided[:-shift]
        if (n := int(both.sum())) < ENOUGH:
            continue
        alike = float((is_kept[shift:] == is_kept[:-shift])[both].double().mean())
        if alike - by_chance > SIGMAS_ALIKE * (by_chance * (1 - by_chance) / n) ** 0.5:
            return (
                f"of elements {shift} apart, {alike:.0%} are kept or dropped together; by chance it is {by_chance:.0%}"
            )
    return None


@says("The mask does not follow the seed: hand the seed to the kernel, as the first argument of tl.rand.")
def follows_the_seed(run: CaseRun) -> str | None:
    first, is_decided = kept(run, run.got["out"])
    second, _ = kept(run, run.got["other"])
    alike = float((first == second)[is_decided].double().mean())
    return f"two seeds gave masks that agree in {alike:.1%} of the elements" if alike > MOST_ALIKE else None


@says(
    "With the seed added to an offset or to a program's number, the next seed has the random numbers of this one, "
    "moved on. Give tl.rand the seed itself, as its first argument, and an offset that is counted through the whole "
    "matrix."
)
def seeds_do_not_overlap(run: CaseRun) -> str | None:
    """The mask of the next seed is not this one's, moved on by an element, a block or a row."""
    first, is_decided = (one.reshape(-1) for one in kept(run, run.got["out"]))
    following, _ = (one.reshape(-1) for one in kept(run, run.got["next"]))
    for shift in (1, run.case.n_cols, *(2**n for n in range(4, 12))):
        both = is_decided[shift:] & is_decided[:-shift]
        if int(both.sum()) >= ENOUGH:
            alike = float((first[shift:] == following[:-shift])[both].double().mean())
            if alike > MOST_ALIKE:
                return f"the mask of seed + 1 is that of seed from element {shift} on"
    return None


@says(None)
def gradients_are_right(run: CaseRun) -> str | None:
    """With the forward pass's own mask; where it is not decided, the gradient of x may be either."""
    case, tree, got = run.case, run.tree, run.got
    is_kept, is_decided = kept(run, got["out"])
    slope = slopes(tree) / (1 - case.p)
    bad = ~torch.isclose(got["dx"].double(), is_kept * dout_of(case, tree).double() * slope, **CLOSE) & is_decided
    if got["dx"].dtype != tree["x"].dtype or bad.any():
        return f"dx is wrong in {int(bad.sum()):,} elements"
    if not torch.allclose(got["dbias"].double(), got["dx"].double().sum(0), rtol=1e-3, atol=1e-4):
        return "dbias is not the sum of dx over the rows"
    return None if torch.equal(got["dy"], dout_of(case, tree)) else "dy is not dout"


def slopes(tree: dict) -> Tensor:
    """The derivative of gelu at x + bias, by autograd."""
    at = (tree["x"].double() + tree["bias"].double()).requires_grad_()
    return torch.autograd.grad(F.gelu(at).sum(), at)[0]
