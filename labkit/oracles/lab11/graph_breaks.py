"""Lab 11: what the broken model gives without a compiler, and what one graph of it has to hold."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from unittest import mock

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab11.broken import BrokenModel
from labkit.exercises.lab11.graph_breaks import Rewritten
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance, Tree

PER_LAYER, BESIDE = 4, 5
"""Operations that are in the graph at least: a product, a choice, a relu and a sum; two scalings, noise and a mean."""


def eagerly(run: CaseRun[Rewritten]) -> Tree:
    """The model's own results, with the noise of the case in place of a generator's, and what it prints."""
    model = BrokenModel(run.case.width, run.case.n_layers)
    model.load_state_dict(run.tree["weights"])
    results, means = [], []
    for batch, noise in zip(run.tree["batches"], run.tree["noise"], strict=True):
        printed, drawn = io.StringIO(), mock.Mock(return_value=noise)
        with torch.no_grad(), contextlib.redirect_stdout(printed), mock.patch("torch.randn", drawn):
            results.append(model(batch, None))
        means.append(torch.tensor(float(printed.getvalue().split()[1])))
    return {"results": results, "means": means, "requires_grad": False}


def _played(
    largest: Callable = lambda x: x.abs().max(),
    noisy: float = 0.1,
    limited: Callable = lambda x, y: y * min(1.0, float(x.norm() / y.norm())),
    at_end: Callable = lambda x: x[x > 0].mean(),
) -> Callable[[CaseRun[Rewritten]], object]:
    """Whether the results are those of the model with one line read otherwise."""

    def when(run: CaseRun[Rewritten]) -> object:
        weights = run.tree["weights"]
        results = []
        for x, noise in zip(run.tree["batches"], run.tree["noise"], strict=True):
            x = x / largest(x) + noisy * noise
            for n in range(run.case.n_layers):
                y = x @ weights[f"layers.{n}.weight"].T + weights[f"layers.{n}.bias"]
                x = x + torch.relu(limited(x, y))
            results.append(x / at_end(x))
        if _close(results, run.expected["results"]):
            return CANNOT_TELL if _close(run.got["results"], results) else False
        return _close(run.got["results"], results)

    return when


def _close(got: list, other: list) -> bool:
    pairs = zip(got, other, strict=True)
    return all(a.shape == b.shape and torch.allclose(a, b, atol=1e-4, rtol=1e-3, equal_nan=True) for a, b in pairs)


def mean_stays(run: CaseRun[Rewritten]) -> object:
    """The results are right, and the buffer is what it was at the beginning."""
    kept = run.tree["weights"]["mean"]
    return _close(run.got["results"], run.expected["results"]) and all(
        torch.equal(one, kept) for one in run.got["means"]
    )


def mean_keeps_graphs(run: CaseRun[Rewritten]) -> object:
    """The numbers are right, and the buffer hangs on the graph that made it."""
    is_right = all(_close(run.got[name], run.expected[name]) for name in ("results", "means"))
    return is_right and run.got["requires_grad"] is True


def mean_of_the_result(run: CaseRun[Rewritten]) -> object:
    means = [one.mean() for one in run.expected["results"]]
    return _close(run.got["results"], run.expected["results"]) and _close(run.got["means"], means)


def hidden(run: CaseRun[Rewritten]) -> object:
    """One graph, with the right results, that holds too little."""
    return (
        run.measured["captured_operations"] < least_operations(run)
        and run.measured["graph_breaks"] == 0
        and run.measured["eager_calls"] == 0
    )


def _broken_by(*parts: str) -> Callable[[CaseRun[Rewritten]], object]:
    """Whether all breaks have one of these texts in reason or line."""

    def when(run: CaseRun[Rewritten]) -> object:
        breaks = run.held["graph_breaks"]
        return bool(breaks) and all(any(part in one for part in parts) for one in breaks)

    return when


def least_operations(run: CaseRun[Rewritten]) -> float:
    return PER_LAYER * run.case.n_layers + BESIDE


def called(run: Observation) -> str:
    case = run.case
    return (
        f"model = OneGraph({case.width}, {case.n_layers}); torch.compile(model)(x, noise), {case.n_batches} times "
        f"with x of shape ({case.n_rows}, {case.width})"
    )


GRAPH_BREAKS = Oracle(
    id="11-graph-breaks",
    expect=eagerly,
    tolerance=Tolerance(atol=1e-4, rtol=1e-3),
    judge=(inputs_untouched,),
    call=called,
    places={
        "results": "result of a batch",
        "means": "model.mean after a batch",
        "requires_grad": "model.mean.requires_grad after the last batch",
    },
    axis="sizes, numbers of layers, and how often the results of layers are too large",
    budgets=(
        Budget(
            "graph_breaks",
            0,
            "The graph ends at the lines named above. Each of them needs in Python what only the tensor knows, or "
            "calls what Dynamo cannot follow: say it in operations on tensors.",
        ),
        Budget(
            "eager_calls",
            0,
            "Calls ran eagerly: nothing of the model was compiled, and the reason is not a break in the middle.",
        ),
        Budget("graphs", 1, "There is more than one graph: one call of the model is to be one graph, for all batches."),
        Budget(
            "captured_operations",
            least_operations,
            "The graph holds hardly any operations: the work of the model has to be in it, operation by operation.",
            at_least=True,
        ),
    ),
    diagnose=(
        Hint(
            mean_keeps_graphs,
            "self.mean has become part of the autograd graph. Each call adds its own graph to the one before and frees "
            "none of them, and the guard on requires_grad fails in the second call. A number to look at is kept "
            "without: x.mean().detach().",
        ),
        Hint(
            _broken_by("torch.compiler.disable"),
            "A function that is disabled still cuts the graph: the part before it and the part behind it are compiled, "
            "and it runs eagerly between them. Rewrite what stands in it.",
        ),
        Hint(
            hidden,
            "It is one graph, but the work is not in it: it hides in a call that the compiler cannot look into, or "
            "is done elsewhere. Every operation of the model has to be one of the graph.",
        ),
        Hint(
            _broken_by("item()"),
            "What needs the value of a tensor in Python ends the graph: .item(), float() and int(). "
            "Leave the number in its tensor of 0 dimensions, and divide by that.",
        ),
        Hint(
            _broken_by("a branch on the values", "Data-dependent branching"),
            "An `if` on the values of a tensor ends the graph, because Python has to know which way to go. Compute "
            "both and choose by torch.where, or limit the factor by torch.clamp.",
        ),
        Hint(
            _broken_by("Dynamic shape operator"),
            "x[x > 0] has as many elements as x has positive ones, so its shape depends on the values. Sum with zeros "
            "in the other places, and divide by the number of positive ones.",
        ),
        Hint(
            _broken_by("print"),
            "print ends the graph: it has to show values that are not there yet. Write the mean into the buffer "
            "self.mean, and leave printing to who calls the model.",
        ),
        Hint(
            mean_stays,
            "The results are right, and self.mean was never written: what BrokenModel prints is to be there after "
            "each call.",
        ),
        Hint(
            mean_of_the_result,
            "self.mean is the mean of what is returned. BrokenModel prints the mean of x before the last division.",
        ),
        Hint(
            _played(limited=lambda x, y: y),
            "The results of the layers are not limited: where y has a larger norm than x, it is scaled to x's.",
        ),
        Hint(
            _played(limited=lambda x, y: y * (x.norm() / y.norm())),
            "Every y is scaled to the norm of x, also where its own is smaller: the factor is at most 1.",
        ),
        Hint(
            _played(limited=lambda x, y: y * max(1.0, float(x.norm() / y.norm()))),
            "y is scaled where its norm is the smaller one: scaled down is a y whose norm is larger than that of x.",
        ),
        Hint(
            _played(limited=lambda x, y: y * min(1.0, float(y.norm() / x.norm()))),
            "The factor is upside down: where y has the larger norm, it is multiplied by x.norm() / y.norm().",
        ),
        Hint(
            _played(
                limited=lambda x, y: y * (x.norm(dim=-1, keepdim=True) / y.norm(dim=-1, keepdim=True)).clamp(max=1)
            ),
            "Each row is limited by itself. BrokenModel compares the norms of the whole batch, and has one factor.",
        ),
        Hint(_played(largest=lambda x: 1.0), "x is not divided by its largest magnitude."),
        Hint(
            _played(largest=lambda x: x.max()),
            "x is divided by its largest value. BrokenModel takes the largest magnitude, x.abs().max().",
        ),
        Hint(
            _played(largest=lambda x: x.abs().amax(-1, keepdim=True)),
            "Each row is divided by its own largest magnitude. BrokenModel takes that of the whole batch.",
        ),
        Hint(
            _played(at_end=lambda x: torch.where(x > 0, x, 0.0).mean()),
            "The sum of the positive values is divided by the number of all: mean() of a tensor with zeros counts the "
            "zeros, too.",
        ),
        Hint(
            _played(at_end=lambda x: x.sum() / (x > 0).sum()),
            "The sum of all values is divided by the number of positive ones: the others count as 0 in the sum.",
        ),
        Hint(_played(noisy=1.0), "The noise is added in full: BrokenModel adds a tenth of it."),
        Hint(_played(noisy=0.0), "The noise is not added."),
    ),
)
