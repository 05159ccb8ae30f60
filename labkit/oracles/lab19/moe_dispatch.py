"""Lab 19: the oracle of tokens sent to experts: one process's values and gradients, few bytes, five calls.

What one process has stands in `dispatch_values`, and what mistakes make in `dispatch_mistakes`.
"""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.exercises.lab19.moe_dispatch import Mixture
from labkit.oracles.hints import any_of
from labkit.oracles.lab19.dispatch_mistakes import (
    chosen_outputs,
    is_missing,
    matrices_scaled,
    order_not_restored,
    ordered_twice,
    other_weights,
    outs_are,
    sorted_by_expert_alone,
    swapped_rows,
    tokens_in_turn,
    weights_before,
    weights_in_another_order,
    weights_of,
    whole_batches,
    wrong_rows,
)
from labkit.oracles.lab19.dispatch_values import CLOSE, expect, wanted
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle

COUNTS_BYTES = 8


def most_bytes(run: CaseRun[Mixture]) -> int:
    """Rows to other ranks and back, in both passes, and a count for each expert of another rank."""
    case, n = run.case, run.case.n_ranks
    between = wanted(run).view(n, n, case.n_local).sum(2)
    away = between.sum(1) + between.sum(0) - 2 * between.diagonal()
    counts = COUNTS_BYTES * case.n_local * (n - 1)
    return max(2 * 4 * case.width * int(away.max()) + counts, 1)


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
