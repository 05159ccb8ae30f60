"""Lab 12: what is true of any dropout in a fused kernel, whichever mask it drew.

Any mask will do that is random, follows the seed and comes back in the backward pass. How the usual mistakes look is in
dropout_mistakes.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab12.bias_gelu_dropout import SEEDS_APART, Dropped
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
MOST_BY_CHANCE = 1e-9
"""Probability that two independent masks have a section in common that is long enough to tell."""
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


def alike_by_chance(is_kept: Tensor) -> float:
    """The probability that two independent elements are both kept or both dropped."""
    share = float(is_kept.double().mean())
    return share**2 + (1 - share) ** 2


def telling_length(is_kept: Tensor, by_chance: float) -> int:
    """How many elements in a row have to agree until chance is ruled out, of all pairs of sections of two masks."""
    n_pairs = is_kept.numel() ** 2
    if not 0 < by_chance < 1:
        return is_kept.numel()
    return min(is_kept.numel(), math.ceil(math.log(MOST_BY_CHANCE / n_pairs) / math.log(by_chance)))


def sections(is_kept: Tensor, length: int) -> Iterator[bytes]:
    """The mask of each `length` elements in a row."""
    whole = is_kept.byte().numpy().tobytes()
    return (whole[at : at + length] for at in range(len(whole) - length + 1))


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
    """Elements at some distance are not kept or dropped together more often than chance has it, and no section of the
    mask occurs again."""
    is_kept, is_decided = (one.reshape(-1) for one in kept(run, run.got["out"]))
    by_chance = alike_by_chance(is_kept[is_decided])
    for shift in sorted({run.case.n_cols, *range(1, 17), *(2**n for n in range(5, 12))}):
        both = is_decided[shift:] & is_decided[:-shift]
        if (n := int(both.sum())) < ENOUGH:
            continue
        alike = float((is_kept[shift:] == is_kept[:-shift])[both].double().mean())
        if alike - by_chance > SIGMAS_ALIKE * (by_chance * (1 - by_chance) / n) ** 0.5:
            return (
                f"of elements {shift} apart, {alike:.0%} are kept or dropped together; by chance it is {by_chance:.0%}"
            )
    length = telling_length(is_kept, by_chance)
    first_at: dict[bytes, int] = {}
    for at, section in enumerate(sections(is_kept, length)):
        if at - (before := first_at.setdefault(section, at)) >= length:
            ends = f"{before + length - 1:,}", f"{at + length - 1:,}"
            return f"elements {at:,} to {ends[1]} have the mask of elements {before:,} to {ends[0]}"
    return None


@says("The mask does not follow the seed: hand the seed to the kernel, as the first argument of tl.rand.")
def follows_the_seed(run: CaseRun) -> str | None:
    first, is_decided = kept(run, run.got["out"])
    second, _ = kept(run, run.got["other"])
    alike = float((first == second)[is_decided].double().mean())
    return f"two seeds gave masks that agree in {alike:.1%} of the elements" if alike > MOST_ALIKE else None


@says(
    "The masks of two seeds share random numbers. That happens where the seed is added to an offset, or is combined "
    "with a program's number. Give tl.rand the seed itself, as its first argument, and an offset that is counted "
    "through the whole matrix."
)
def seeds_do_not_overlap(run: CaseRun) -> str | None:
    """No section of the mask occurs in that of another seed, at the same elements or at others."""
    first, is_decided = (one.reshape(-1) for one in kept(run, run.got["out"]))
    length = telling_length(first, alike_by_chance(first[is_decided]))
    at_of = {section: at for at, section in enumerate(sections(first, length))}
    for name, seed in (("next", "seed + 1"), ("other", f"seed + {SEEDS_APART:,}")):
        for at, section in enumerate(sections(kept(run, run.got[name])[0].reshape(-1), length)):
            if (before := at_of.get(section)) is not None:
                return (
                    f"with {seed}, elements {at:,} to {at + length - 1:,} have the mask that elements {before:,} to "
                    f"{before + length - 1:,} have with seed"
                )
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
