"""Lab 19: what is true of experts on several ranks: one process that calls each expert on all tokens, and autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab19.moe_dispatch import Mixture
from labkit.oracles.hints import any_of, once
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)
COUNTS_BYTES = 8


@once
def dense(run: CaseRun[Mixture]) -> dict[str, list[Tensor]]:
    """Each expert on every token of every rank, weighted by what the token chose; float64, by rank."""
    ranks = run.tree["ranks"]
    x, weights, matrices = (
        [one[name].double().requires_grad_() for one in ranks] for name in ("x", "weights", "matrices")
    )
    every = torch.cat(matrices)
    outs = []
    for tokens, share, one in zip(x, weights, ranks, strict=True):
        each = torch.tanh(torch.einsum("tw,ewv->tev", tokens, every))
        outs.append((each.gather(1, one["chosen"][..., None].expand(-1, -1, run.case.width)) * share[..., None]).sum(1))
    loss = sum((out * one["d_out"].double()).sum() for out, one in zip(outs, ranks, strict=True))
    loss.backward()
    return {
        "out": [out.detach() for out in outs],
        "d_x": [one.grad for one in x],
        "d_weights": [one.grad for one in weights],
        "d_matrices": [one.grad for one in matrices],
    }


@once
def wanted(run: CaseRun[Mixture]) -> Tensor:
    """(rank, expert) -> how many of the rank's choices are for this expert."""
    case = run.case
    return torch.stack([one["chosen"].flatten().bincount(minlength=case.n_experts) for one in run.tree["ranks"]])


def expect(run: CaseRun[Mixture]) -> dict[str, Any]:
    rows = wanted(run).sum(0).view(run.case.n_ranks, -1).tolist()
    parts = dense(run)
    return {
        "ranks": [
            {name: part[rank].float() for name, part in parts.items()} | {"rows": rows[rank]}
            for rank in range(run.case.n_ranks)
        ]
    }


def most_bytes(run: CaseRun[Mixture]) -> int:
    """Rows to other ranks and back, in both passes, and a count for each expert of another rank."""
    case, n = run.case, run.case.n_ranks
    between = wanted(run).view(n, n, case.n_local).sum(2)
    away = between.sum(1) + between.sum(0) - 2 * between.diagonal()
    counts = COUNTS_BYTES * case.n_local * (n - 1)
    return max(2 * 4 * case.width * int(away.max()) + counts, 1)


# Mistakes -------------------------------------------------------------------------------------------------------------


def outs_are(made: Callable[[CaseRun[Mixture], int], Tensor]) -> Callable[[CaseRun[Mixture]], Any]:
    """A hint's condition: each rank's output is what a mistake makes of it; CANNOT_TELL where it changes nothing."""

    def when(run: CaseRun[Mixture]) -> Any:
        wrong = [made(run, rank).float() for rank in range(run.case.n_ranks)]
        if compare([one["out"] for one in run.expected["ranks"]], wrong, CLOSE) is None:
            return CANNOT_TELL
        return compare(wrong, [one["out"] for one in run.got["ranks"]], CLOSE) is None

    return when


@once
def every_expert(run: CaseRun[Mixture]) -> Tensor:
    return torch.cat([one["matrices"].double() for one in run.tree["ranks"]])


@once
def chosen_outputs(run: CaseRun[Mixture], rank: int) -> Tensor:
    """What a rank's choices come to without their weights, (tokens, k, width)."""
    mine = run.tree["ranks"][rank]
    each = torch.tanh(torch.einsum("tw,ewv->tev", mine["x"].double(), every_expert(run)))
    return each.gather(1, mine["chosen"][..., None].expand(-1, -1, run.case.width))


def weights_of(run: CaseRun[Mixture], rank: int) -> Tensor:
    return run.tree["ranks"][rank]["weights"].double()[..., None]


def order_of(run: CaseRun[Mixture], rank: int) -> Tensor:
    """A rank's choices, sorted by expert."""
    return run.tree["ranks"][rank]["chosen"].flatten().argsort(stable=True)


def through(run: CaseRun[Mixture], rows: Tensor, experts: Tensor) -> Tensor:
    """What comes of each row by its expert, numbered over all ranks."""
    return torch.tanh((rows[:, None] @ every_expert(run)[experts])[:, 0])


def weighted_sums(run: CaseRun[Mixture], rank: int, results: Tensor) -> Tensor:
    """A token's results, (tokens x k, width) in the order of its choices, weighted and added."""
    return (results.view(-1, run.case.k, run.case.width) * weights_of(run, rank)).sum(1)


def tokens_in_turn(run: CaseRun[Mixture], rank: int) -> Tensor:
    """Choice i taken for one of token i modulo the number of tokens."""
    mine = run.tree["ranks"][rank]
    chosen = mine["chosen"].flatten()
    return weighted_sums(run, rank, through(run, mine["x"].double().repeat(run.case.k, 1), chosen))


@once
def sorted_by_expert_alone(run: CaseRun[Mixture]) -> list[Tensor]:
    """What comes to a rank taken for sorted by expert, in place of by sender and then by expert."""
    ranks, n_local = run.tree["ranks"], run.case.n_local
    experts = [one["chosen"].flatten()[order_of(run, rank)] for rank, one in enumerate(ranks)]
    taken_for = [one.clone() for one in experts]
    for owner in range(run.case.n_ranks):
        here = [one // n_local == owner for one in experts]
        came = torch.cat([one[some] for one, some in zip(experts, here, strict=True)])
        parts = came.sort().values.split([int(some.sum()) for some in here])
        for one, some, part in zip(taken_for, here, parts, strict=True):
            one[some] = part
    outs = []
    for rank, one in enumerate(ranks):
        order = order_of(run, rank)
        back = through(run, one["x"].double()[order // run.case.k], taken_for[rank])
        outs.append(weighted_sums(run, rank, torch.empty_like(back).index_copy_(0, order, back)))
    return outs


def weights_in_another_order(run: CaseRun[Mixture], rank: int) -> Tensor:
    """Results in the order of the experts, weights in that of the choices."""
    order, weights = order_of(run, rank), weights_of(run, rank).flatten(0, 1)
    back = chosen_outputs(run, rank).flatten(0, 1)[order] * weights
    return torch.zeros_like(chosen_outputs(run, rank)[:, 0]).index_add_(0, order // run.case.k, back)


def weights_before(run: CaseRun[Mixture], rank: int) -> Tensor:
    """Rows multiplied by their weights on the way to the experts."""
    mine = run.tree["ranks"][rank]
    rows = (mine["x"].double()[:, None] * weights_of(run, rank)).flatten(0, 1)
    return through(run, rows, mine["chosen"].flatten()).view(-1, run.case.k, run.case.width).sum(1)


def other_weights(made: Callable[[Tensor], Tensor]) -> Callable[[CaseRun[Mixture], int], Tensor]:
    return lambda run, rank: (chosen_outputs(run, rank) * made(weights_of(run, rank))).sum(1)


def order_not_restored(run: CaseRun[Mixture], rank: int) -> Tensor:
    """Rows as they came back, in the order of experts, taken for those of the tokens."""
    order = order_of(run, rank)
    return weighted_sums(run, rank, chosen_outputs(run, rank).flatten(0, 1)[order])


def ordered_twice(run: CaseRun[Mixture], rank: int) -> Tensor:
    """The order applied once more in place of being undone."""
    order = order_of(run, rank)
    return weighted_sums(run, rank, chosen_outputs(run, rank).flatten(0, 1)[order][order])


def wrong_rows(run: CaseRun[Mixture]) -> Any:
    """Other numbers of rows came to the experts, and not more altogether."""
    got, right = ([one["rows"] for one in some["ranks"]] for some in (run.got, run.expected))
    if got == right:
        return CANNOT_TELL if run.case.n_local == 1 or run.case.n_ranks == 1 else False
    return sum(map(sum, got)) == sum(map(sum, right))


def swapped_rows(run: CaseRun[Mixture]) -> Any:
    """Each expert has as many rows as it should, and the outputs are wrong: these are rows of other experts."""
    got, right = ([one["rows"] for one in some["ranks"]] for some in (run.got, run.expected))
    if got != right:
        return False
    if run.case.n_local == 1 or run.case.n_ranks == 1:
        return CANNOT_TELL
    return compare([one["out"] for one in run.expected["ranks"]], [one["out"] for one in run.got["ranks"]], CLOSE)


def whole_batches(run: CaseRun[Mixture]) -> Any:
    """Experts were given rows that did not choose them."""
    got, right = (sum(sum(one["rows"]) for one in some["ranks"]) for some in (run.got, run.expected))
    return got > right


def is_missing(name: str) -> Callable[[CaseRun[Mixture]], Any]:
    """A hint's condition: outputs are right, and a gradient is not there."""

    def when(run: CaseRun[Mixture]) -> Any:
        pairs = list(zip(run.expected["ranks"], run.got["ranks"], strict=True))
        if any(compare(a["out"], b["out"], CLOSE) for a, b in pairs):
            return False
        return all(b[name] is None or not bool(b[name].any()) for _, b in pairs)

    return when


def matrices_scaled(run: CaseRun[Mixture]) -> Any:
    """The experts' gradients are a multiple of the right ones."""
    factors = []
    for a, b in zip(run.expected["ranks"], run.got["ranks"], strict=True):
        if compare(a["out"], b["out"], CLOSE):
            return False
        if bool(a["d_matrices"].any()):
            factors.append(float((b["d_matrices"] * a["d_matrices"]).sum() / a["d_matrices"].square().sum()))
    if run.case.n_ranks == 1:
        return CANNOT_TELL
    return max(factors) - min(factors) < 1e-3 and abs(factors[0] - 1) > 1e-2 and abs(factors[0]) > 1e-2


def in_words(run: Observation) -> str:
    case = run.case
    favourite = "; expert 0 is everybody's first choice" if case.favourite else ""
    return (
        f"{case.n_ranks} rank{'s' * (case.n_ranks > 1)} with {', '.join(map(str, case.n_tokens))} tokens of width "
        f"{case.width} and {case.n_local} experts each, k = {case.k}{favourite}"
    )


MOE_DISPATCH = Oracle(
    id="19-moe-dispatch",
    call=in_words,
    places={
        "out": "output",
        "d_x": "gradient of x",
        "d_weights": "gradient of the weights",
        "d_matrices": "gradient of the experts' matrices",
        "rows.*": "number of rows for expert no. {} of this rank",
    },
    expect=expect,
    tolerance=CLOSE,
    judge=(inputs_untouched,),
    axis="other numbers of tokens, experts and choices; ranks to which no token comes",
    errors={
        "which receives it into": "What rank a sends to rank b is what rank b has to receive from rank a. Every rank "
        "has to learn how many rows will come from each of the others before they come.",
        "with output int64 of shape": "If these are the counts of rows: there is one for each expert of each rank, 0 "
        "for an expert that nobody chose. bincount ends with the largest expert that was chosen, unless minlength says "
        "more.",
        "split_sizes": "exchange wants one number for each rank: how many rows go there, and how many come from there. "
        "A rank sends one row for each choice, so these are sums over a rank's experts, and in general all different.",
        "is out of bounds": "If this came from x[...]: choice i of chosen.flatten() belongs to token i // k.",
        "list index out of range": "If this came from run_expert: it counts the rank's own experts from 0, so on its "
        "rank expert e has the number e - rank * n_local.",
    },
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes. A row goes to the rank of its expert, and its result comes back. Before that, one number "
            "for each expert says how many rows will come. Everything else stays where it is.",
        ),
        Budget(
            "collectives",
            5,
            "Too many calls. Three are enough in the forward pass: the counts, the rows, and their results.",
        ),
    ),
    diagnose=(
        Hint(
            whole_batches,
            "The experts were given rows of tokens that did not choose them. A row goes to an expert once for each "
            "choice of this expert, and to no other expert.",
        ),
        Hint(
            outs_are(order_not_restored),
            "The rows came back in the order of the experts, but were used as if they were in the order of the tokens: "
            "undo the order in which they were sorted, out[order] = rows.",
        ),
        Hint(
            outs_are(ordered_twice),
            "rows[order] sorts once more. To undo an order, write to its places: out[order] = rows.",
        ),
        Hint(
            outs_are(lambda run, rank: chosen_outputs(run, rank).sum(1)),
            "The outputs of a token's experts were added without their weights.",
        ),
        Hint(
            outs_are(lambda run, rank: (chosen_outputs(run, rank) * weights_of(run, rank)).mean(1)),
            "The weighted outputs of a token's experts were averaged: add them up.",
        ),
        Hint(
            outs_are(lambda run, rank: (chosen_outputs(run, rank) * weights_of(run, rank) ** 2).sum(1)),
            "The weights were applied twice, before and after the way back.",
        ),
        Hint(
            outs_are(tokens_in_turn),
            "Rows of other tokens were sent to the experts. In chosen.flatten() the k choices of a token stand side by "
            "side, so choice i belongs to token i // k.",
        ),
        Hint(
            outs_are(lambda run, rank: sorted_by_expert_alone(run)[rank]),
            "What has come was taken for sorted by expert. It is sorted by sender, and within each sender by expert: "
            "collect an expert's rows from all senders, and put the results back in their places.",
        ),
        Hint(
            outs_are(weights_in_another_order),
            "The results were multiplied by the weights of other choices. What comes back is sorted by expert, while "
            "weights.flatten() stands in the order of the tokens: sort the weights in the same way, or undo the order "
            "first.",
        ),
        Hint(
            outs_are(weights_before),
            "The rows were multiplied by their weights before they went to the experts. An expert is not linear: it is "
            "its result that the weight belongs to.",
        ),
        Hint(
            any_of(
                outs_are(other_weights(lambda weights: weights / weights.sum(1, keepdim=True))),
                outs_are(other_weights(lambda weights: weights.softmax(1))),
            ),
            "The weights were made to add up to 1 for each token. Take them as they are given.",
        ),
        Hint(
            wrong_rows,
            "Rows came to the wrong experts: the numbers of rows are not what the tokens chose. What comes is sorted "
            "by sender, and within each sender by expert.",
        ),
        Hint(
            swapped_rows,
            "Each expert was given the right number of rows, but the outputs are wrong. Look at three places. Choice i "
            "belongs to token i // k. What comes is sorted by sender, and within each sender by expert: collect an "
            "expert's rows from all senders, and put the results back in their places. Last, each result is multiplied "
            "by the weight of its own choice, as it was given.",
        ),
        Hint(
            is_missing("d_x"),
            "The outputs are right, but the tokens have no gradient. Autograd does not see comm.all_to_all_single, nor "
            "anything behind detach() or no_grad(): send the rows and the results with exchange.",
        ),
        Hint(
            is_missing("d_weights"),
            "The outputs are right, but the weights have no gradient: the router would never learn.",
        ),
        Hint(
            matrices_scaled,
            "The gradients of the experts are a multiple of the right ones. An expert gets the gradients of all its "
            "rows, from whichever rank they came, so there is nothing to add or average over ranks.",
        ),
    ),
)
