"""Lab 12: what is true of dropout in a fused kernel, and what the usual mistakes look like.

Which elements are dropped is the answer's own: any mask will do that is random, follows the seed and comes back.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab12.bias_gelu_dropout import Dropped
from labkit.exercises.lab12.shapes import dout_of
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import SAFE, at_full_size, compiled, moved
from labkit.oracles.lab12.close import DOUT_HINT, dout_in_words, in_memory_order, keeps_at_most
from labkit.spec import CaseRun, Hint, Oracle

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


def is_value(got: dict, values: Tensor) -> Tensor:
    """Of each element of out, whether it is this, more or less."""
    out = got["out"].double()
    return torch.isclose(out, values.expand(out.shape), rtol=1e-3, atol=1e-4)


def is_either(run: CaseRun, kept_values: Tensor) -> Tensor:
    """Of each element of out, whether it is what it should be if kept, or y."""
    return is_value(run.got, kept_values) | is_value(run.got, run.tree["y"].double())


def either(run: CaseRun, kept_values: Tensor, dropped: Tensor | None = None) -> bool:
    """Nearly every element of out is one of two values, and both occur."""
    one, other = (
        is_value(run.got, kept_values),
        is_value(run.got, run.tree["y"].double() if dropped is None else dropped),
    )
    return bool((one | other).double().mean() > 0.99 and one.any() and other.any())


def unscaled(run: CaseRun[Dropped]) -> bool:
    """Divided by nothing, or by p, which is the same as 1 - p at one half."""
    if values_are_right(run) is None:
        return False
    values = activated(run.tree)
    return any(either(run, run.tree["y"].double() + wrong) for wrong in (values, values / run.case.p))


def bias_elsewhere(run: CaseRun[Dropped]) -> bool:
    """No bias, or that of the row's number; or the first row has the right ones, and the last one has not."""
    case, tree = run.case, run.tree
    biases = (torch.zeros(1), tree["bias"][torch.arange(case.n_rows) % case.n_cols][:, None])
    x = tree["x"].double()
    if any(either(run, tree["y"].double() + F.gelu(x + bias) / (1 - case.p)) for bias in biases):
        return True
    right = is_either(run, tree["y"].double() + activated(tree) / (1 - case.p))
    return bool(right[0].all() and right[-1].double().mean() < 0.9)


def drops_y_too(run: CaseRun[Dropped]) -> bool:
    sums = run.tree["y"].double() + activated(run.tree)
    return any(either(run, one, torch.zeros((), dtype=torch.float64)) for one in (sums / (1 - run.case.p), sums))


def approximate(run: CaseRun[Dropped]) -> bool:
    """Close to the right values, but not right: GELU by tanh is off by up to 5e-4."""
    right = activated(run.tree, "tanh") / (1 - run.case.p)
    return either(run, run.tree["y"].double() + right)


def lacks_y(run: CaseRun[Dropped]) -> bool:
    return either(run, activated(run.tree) / (1 - run.case.p), torch.zeros((), dtype=torch.float64))


def other_activation(run: CaseRun[Dropped]) -> bool:
    """x times the sigmoid of 1.702 x, or erf without the root of 2."""
    at = run.tree["x"].double() + run.tree["bias"].double()
    wrong = (at * torch.sigmoid(1.702 * at), at * (1 + torch.erf(at)) / 2)
    return any(either(run, run.tree["y"].double() + one / (1 - run.case.p)) for one in wrong)


def dropped_before(run: CaseRun[Dropped]) -> bool:
    inside = F.gelu((run.tree["x"].double() + run.tree["bias"].double()) / (1 - run.case.p))
    return either(run, run.tree["y"].double() + inside)


def gradient_is_to_blame(run: CaseRun[Dropped]) -> bool:
    """Whether the forward pass is right and a gradient is not."""
    return values_are_right(run) is None and gradients_are_right(run) is not None


def other_mask(run: CaseRun[Dropped]) -> bool:
    """Every element of dx is 0 or what a kept one has, and not where the forward pass had it."""
    if not gradient_is_to_blame(run):
        return False
    full = dout_of(run.case, run.tree).double() * slopes(run.tree) / (1 - run.case.p)
    dx = run.got["dx"].double()
    fits = torch.isclose(dx, full, rtol=1e-3, atol=1e-5) | (dx.abs() < 1e-6)
    is_kept, is_decided = kept(run, run.got["out"])
    return bool(fits.all() and ((dx.abs() > 1e-6) != is_kept)[is_decided].double().mean() > 0.05)


def dout_as_contiguous(run: CaseRun[Dropped]) -> bool:
    is_kept, is_decided = kept(run, run.got["out"])
    if not run.case.dout_by_columns or not gradient_is_to_blame(run):
        return False
    wrong = is_kept * dout_of(run.case, in_memory_order(run)).double() * slopes(run.tree) / (1 - run.case.p)
    return torch.allclose(run.got["dx"].double()[is_decided], wrong[is_decided], **CLOSE)


def one_term_of_the_slope(run: CaseRun[Dropped]) -> bool:
    """The derivative of a * phi(a) lacks one of its terms, or the factor a of the second one."""
    at = run.tree["x"].double() + run.tree["bias"].double()
    phi, density = (1 + torch.erf(at / 2**0.5)) / 2, torch.exp(-at.square() / 2) / (2 * torch.pi) ** 0.5
    is_kept, is_decided = kept(run, run.got["out"])
    incoming = is_kept * dout_of(run.case, run.tree).double() / (1 - run.case.p)
    wrong = (incoming * one for one in (phi, at * density, phi + density, phi - at * density))
    dx = run.got["dx"].double()[is_decided]
    return gradient_is_to_blame(run) and any(torch.allclose(dx, one[is_decided], **CLOSE) for one in wrong)


def dx_unscaled(run: CaseRun[Dropped]) -> bool:
    is_kept, is_decided = kept(run, run.got["out"])
    return gradient_is_to_blame(run) and torch.allclose(
        run.got["dx"].double()[is_decided],
        (is_kept * dout_of(run.case, run.tree).double() * slopes(run.tree))[is_decided],
        **CLOSE,
    )


BIAS_GELU_DROPOUT = Oracle(
    id="12-bias-gelu-dropout",
    judge=(
        inputs_untouched,
        values_are_right,
        mask_does_not_repeat,
        share_is_right,
        follows_the_seed,
        seeds_do_not_overlap,
        gradients_are_right,
        keeps_at_most(
            lambda case: 0,
            "Keep no mask: the seed and an element's number give the same random number again in the backward pass.",
        ),
    ),
    budgets=(
        *SAFE,
        # Three times forward: x, y and the bias; backward: x, dout and the bias; dx once more for the bias's gradient.
        *moved(
            load=lambda run: 13 * run.case.n_bytes + run.case.copied_bytes,
            store=lambda run: 4 * run.case.n_bytes + run.case.copied_bytes + 8 * run.case.n_cols,
            atomic=lambda run: run.case.n_bytes,
            launches=5,
        ),
        *compiled(),
    ),
    full_size=at_full_size(most_programs=lambda run: run.case.n_rows * run.case.n_cols // 64),
    call=lambda run: (
        as_call("bias_gelu_dropout", *(run.tree[name] for name in ("x", "bias", "y")), p=run.case.p, seed=run.case.seed)
        + dout_in_words(run.case)
    ),
    diagnose=(
        Hint(drops_y_too, "y is added after the dropout, so that it is never dropped."),
        Hint(unscaled, "What is kept has to be divided by 1 - p, so that the mean stays what it was."),
        Hint(dropped_before, "The division by 1 - p comes after the activation, not before it."),
        Hint(lacks_y, "y is missing: the result is y plus what dropout leaves of the activation."),
        Hint(other_activation, "This is not the exact GELU. It is x / 2 * (1 + tl.erf(x / sqrt(2))), at x + bias."),
        Hint(approximate, "This is GELU by tanh. Use the exact one: x / 2 * (1 + tl.erf(x / sqrt(2)))."),
        Hint(
            bias_elsewhere,
            "The bias is not that of the element's column. With offs counted through the whole matrix, the column is "
            "offs % n_cols.",
        ),
        Hint(dout_as_contiguous, DOUT_HINT),
        Hint(
            other_mask,
            "The backward pass has another mask than the forward pass: take the same seed, and the same offset for an "
            "element, in both.",
        ),
        Hint(
            one_term_of_the_slope,
            "The derivative of gelu(a) = a * phi(a) has two terms, by the product rule: phi, and a times the "
            "derivative of phi, which is exp(-a * a / 2) / sqrt(2 * pi).",
        ),
        Hint(dx_unscaled, "dx lacks the factor 1 / (1 - p) that the forward pass has."),
        Hint(
            gradient_is_to_blame,
            "The forward pass is right, and a gradient is not. dx is dout times the derivative of gelu at x + bias, "
            "divided by 1 - p where it was kept; dbias is its sum over the rows, and dy is dout.",
        ),
    ),
)
