"""Lab 05: what the usual mistakes make of a loss in chunks and of its gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional as F

from labkit.exercises.lab05.chunked_loss import Head
from labkit.spec import CANNOT_TELL, CaseRun


def loss_like(loss_of: Callable[[CaseRun[Head]], torch.Tensor]) -> Callable[[CaseRun[Head]], object]:
    """A diagnosis: the loss is what this mistake makes of it. Where the right loss is that as well, nobody can tell."""

    def when(run: CaseRun[Head]) -> object:
        close = partial(torch.isclose, run.got["loss"], rtol=1e-4)
        like_it, right = close(loss_of(run)), close(run.expected["loss"])
        return CANNOT_TELL if like_it and right else like_it

    return when


def losses(run: CaseRun[Head]) -> torch.Tensor:
    """Of each token; 0 where it is ignored."""
    return F.cross_entropy(
        run.tree["x"] @ run.tree["weight"].T, run.tree["labels"], ignore_index=run.case.ignore_index, reduction="none"
    )


def mean_of_means(run: CaseRun[Head]) -> torch.Tensor:
    counted = (run.tree["labels"] != run.case.ignore_index).float()
    parts = zip(losses(run).split(run.case.chunk_size), counted.split(run.case.chunk_size))
    return torch.stack([part.sum() / count.sum().clamp(min=1) for part, count in parts]).mean()


def averages_means(run: CaseRun[Head]) -> object:
    """A silent last chunk has no mean, so there the mistake is NaN as a rule, like others.

    Without its last chunk a sum may be about as large; then the gradient of that chunk's tokens is missing.
    """
    if run.case.silent_end and bool(run.got["loss"].isnan()):
        return CANNOT_TELL
    like_it = loss_like(mean_of_means)(run)
    return like_it if like_it is CANNOT_TELL or last_rows_point_right(run) else False


def last_rows_point_right(run: CaseRun[Head]) -> bool:
    """Whether dx of the tokens behind the last full chunk is right but for factors."""
    last = slice(run.case.n_tokens // run.case.chunk_size * run.case.chunk_size, None)
    right, mine = run.expected["dx"][last].double(), run.got["dx"][last].double()
    counted = right.abs().amax(1) > 0
    return bool((torch.cosine_similarity(right, mine, dim=1, eps=1e-30)[counted] > 1 - 1e-4).all())


def mean_of_full_chunks(run: CaseRun[Head]) -> torch.Tensor:
    """Each chunk's sum over its own length, ignored or not, and the mean of that."""
    return torch.stack([part.mean() for part in losses(run).split(run.case.chunk_size)]).mean()


def ignored_as_zero(run: CaseRun[Head]) -> torch.Tensor:
    """Ignored tokens count in the sum as if their label were 0."""
    tree = run.tree
    labels = tree["labels"].where(tree["labels"] != run.case.ignore_index, 0)
    return F.cross_entropy(tree["x"] @ tree["weight"].T, labels, reduction="sum") / n_counted(run)


def with_another_picked(pick: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[CaseRun[Head]], torch.Tensor]:
    """The loss where not the logit of the label, less the maximum, is taken from the logarithm of the sum."""

    def loss_of(run: CaseRun[Head]) -> torch.Tensor:
        tree = run.tree
        counted = tree["labels"] != run.case.ignore_index
        logits = (tree["x"] @ tree["weight"].T)[counted]
        lowered = logits - logits.amax(1, keepdim=True)
        taken = pick(logits if pick is unchanged else lowered).gather(1, tree["labels"][counted, None])
        return (lowered.exp().sum(1, keepdim=True).log() - taken).mean()

    return loss_of


def without_the_label(lowered: bool) -> Callable[[CaseRun[Head]], torch.Tensor]:
    """The logarithm of the sum alone, with or without the maximum added again."""

    def loss_of(run: CaseRun[Head]) -> torch.Tensor:
        tree = run.tree
        logits = (tree["x"] @ tree["weight"].T)[tree["labels"] != run.case.ignore_index]
        top = logits.amax(1) if lowered else 0.0
        return (torch.logsumexp(logits, 1) - top).mean()

    return loss_of


def unchanged(logits: torch.Tensor) -> torch.Tensor:
    return logits


def dx_like(grad_of: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]) -> Callable[[CaseRun[Head]], bool]:
    """A diagnosis: dx is grad_of(p @ W, [v = y] @ W, number of tokens that count)."""

    def diagnose(run: CaseRun[Head]) -> bool:
        tree = run.tree
        counted = tree["labels"] != run.case.ignore_index
        mean_row = torch.softmax(tree["x"][counted] @ tree["weight"].T, dim=1) @ tree["weight"]
        wrong = run.case.upstream * grad_of(mean_row, tree["weight"][tree["labels"][counted]], n_counted(run))
        return torch.allclose(run.got["dx"][counted], wrong, rtol=1e-3, atol=1e-3 * float(wrong.abs().max()))

    return diagnose


def dx_from(gradient_of: Callable[..., torch.Tensor]) -> Callable[[CaseRun[Head]], bool]:
    """A diagnosis: dx is gradient_of(exponentials, their sums, labels) @ W / number of tokens that count."""

    def diagnose(run: CaseRun[Head]) -> bool:
        tree = run.tree
        counted = tree["labels"] != run.case.ignore_index
        logits = tree["x"][counted] @ tree["weight"].T
        exponentials = (logits - logits.amax(1, keepdim=True)).exp()
        gradient = gradient_of(exponentials, exponentials.sum(1, keepdim=True), tree["labels"][counted, None])
        wrong = run.case.upstream * gradient @ tree["weight"] / n_counted(run)
        return torch.allclose(run.got["dx"][counted], wrong, rtol=1e-3, atol=1e-4 * float(wrong.abs().max()))

    return diagnose


def one_subtracted_from_exponentials(exponentials: torch.Tensor, sums: torch.Tensor, labels: torch.Tensor):
    """The 1 at the label goes off before the division by the sum, and not after it."""
    return exponentials.scatter_add(1, labels, -torch.ones_like(sums)) / sums


def minus_one_in_place_of_probability(exponentials: torch.Tensor, sums: torch.Tensor, labels: torch.Tensor):
    """The entry of the label is -1, and not p - 1."""
    return (exponentials / sums).scatter(1, labels, -torch.ones_like(sums))


def without_the_rest(run: CaseRun[Head]) -> torch.Tensor:
    """The loss without a last chunk that is shorter than the others."""
    n_in_full = run.case.n_tokens // run.case.chunk_size * run.case.chunk_size
    return losses(run)[:n_in_full].sum() / n_counted(run)


def each_row_scaled(run: CaseRun[Head]) -> object:
    """Every row of dx points where it should, and their lengths are off, by different factors in one case at least."""
    if ratio("dx", run) and not is_right("dx", run):
        return CANNOT_TELL
    rows = run.expected["dx"].abs().amax(1) > 0
    right, mine = run.expected["dx"][rows].double(), run.got["dx"][rows].double()
    cosines = torch.cosine_similarity(right, mine, dim=1, eps=1e-30)
    return bool((cosines > 1 - 1e-4).all()) and ratio("dx", run) == 0


def ratio(name: str, run: CaseRun[Head]) -> float:
    """By which factor a gradient is off, where it is nothing but a factor; else 0."""
    right = run.expected[name]
    factor = float((run.got[name] * right).sum() / right.square().sum())
    return (
        factor
        if torch.allclose(run.got[name], factor * right, rtol=1e-3, atol=1e-3 * float(right.abs().max()))
        else 0.0
    )


def is_factor(value: float, wanted: float) -> bool:
    return abs(value - wanted) < 1e-3 * abs(wanted) and abs(wanted - 1) > 1e-2


def is_right(name: str, run: CaseRun[Head]) -> bool:
    return abs(ratio(name, run) - 1) < 1e-3


def n_counted(run: CaseRun[Head]) -> float:
    return float((run.tree["labels"] != run.case.ignore_index).sum())


def rows_left_out(run: CaseRun[Head]) -> bool:
    """Whether rows of tokens that count are nothing but zeros, where the right ones are not."""
    empty, right = (
        (rows[run.tree["labels"] != run.case.ignore_index] == 0).all(dim=1)
        for rows in (run.got["dx"], run.expected["dx"])
    )
    return bool((empty & ~right).any())
