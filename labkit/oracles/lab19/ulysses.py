"""Lab 19: the oracle of heads traded for tokens: attention in one process, autograd's gradients, and one n-th of each
tensor sent to each other rank, in each pass."""

from __future__ import annotations

from typing import Any

from labkit.compare import inputs_untouched
from labkit.exercises.lab19.ulysses import Trade
from labkit.oracles.lab19.trade_mistakes import (
    Slip,
    back_in_turn,
    cut_as_it_lay,
    every_nth_head,
    expect,
    gradients_of,
    looks_at_queries_only,
    merged_as_it_came,
    not_refused,
    on_own_tokens,
    output_is,
    output_of,
    outputs_are_right,
    refused_here_and_there,
    refused_in_another_way,
    refused_too_late,
    right_but_for_a_factor,
    some_without_gradient,
    without_gradient,
)
from labkit.oracles.lab19.whole_attention import CLOSE
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle


def bytes_with(case: Trade, kv_heads: int) -> int:
    """What a rank sends in all passes if k and v have so many heads."""
    own = 4 * case.length * case.d * 2 * (case.heads + kv_heads)
    return (1 if case.forward_only else 2) * own * (case.n_ranks - 1) // case.n_ranks


def most_bytes(run: CaseRun[Trade]) -> int:
    """In each pass (2 + 2 kv/a) S/n (n-1)/n, S being a tensor of all heads and all tokens; nothing if refused."""
    return 0 if run.case.is_refused else bytes_with(run.case, run.case.kv_heads)


def repeats_kv_heads(run: CaseRun[Trade]) -> Any:
    """Values are right, and k and v were sent as if they had as many heads as q."""
    if run.case.is_refused or run.case.kv_heads == run.case.heads:
        return CANNOT_TELL
    return outputs_are_right(run) and run.measured["bytes_sent"] == bytes_with(run.case, run.case.heads)


def in_words(run: Observation) -> str:
    case = run.case
    cut = f", left by tensor parallelism over {case.tensor}" if case.tensor > 1 else ""
    alone = "; the forward pass alone" if case.forward_only else ""
    return (
        f"{case.n_ranks} rank{'s' * (case.n_ranks > 1)}; q of shape {(case.heads, case.length, case.d)} and k and v of "
        f"shape {(case.kv_heads, case.length, case.d)} on each{cut}{alone}"
    )


ULYSSES = Oracle(
    id="19-ulysses",
    call=in_words,
    places={
        "out": "output",
        "d_q": "gradient of q",
        "d_k": "gradient of k",
        "d_v": "gradient of v",
        "refused": "exception",
    },
    expect=expect,
    tolerance=CLOSE,
    judge=(inputs_untouched,),
    axis="other numbers of ranks and heads",
    errors={
        "returned an invalid gradient": "A backward pass returned a gradient of another shape than its input. The "
        "gradient of what went from tokens to heads goes from heads to tokens, and the other way round.",
        "don't multiply up to": "The dimension that is split is not a multiple of the number of ranks. Does it hold "
        "heads or tokens? The gradient of what went from tokens to heads goes from heads to tokens, and the other way "
        "round.",
        "cannot share equally": "What is sent is not a multiple of the number of ranks in its first dimension. Does it "
        "begin with heads or with ranks? The gradient of what went from tokens to heads goes from heads to tokens, and "
        "the other way round.",
        "returned an incorrect number of gradients": "backward returns one value for each argument of forward, None "
        "for those that are not tensors.",
    },
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes. A rank keeps one n-th of its q, k, v and output, and sends one n-th to each other rank. "
            "Their gradients take the same ways back, and nothing else travels.",
        ),
    ),
    diagnose=(
        Hint(
            refused_too_late,
            "Something was sent before the ValueError. Look at the heads of q and of k before the first exchange.",
        ),
        Hint(
            looks_at_queries_only,
            "q has enough heads to deal, but k and v do not, and nothing was refused. Look at both numbers of heads.",
        ),
        Hint(
            refused_in_another_way,
            "If the number of ranks does not divide the heads, raise a ValueError, before anything else fails.",
        ),
        Hint(
            not_refused,
            "The number of ranks does not divide the heads here: raise a ValueError, on every rank.",
        ),
        Hint(
            refused_here_and_there,
            "Where the number of ranks does not divide the heads, something else went wrong before the ValueError. "
            "Look at both numbers of heads before the first exchange.",
        ),
        Hint(
            repeats_kv_heads,
            "The result is right, but k and v were sent with as many heads as q has. Send them as they are: "
            "`attention` finds the head that belongs to a query.",
        ),
        Hint(
            output_is(on_own_tokens),
            "Each rank attended to its own tokens alone. Exchange q, k and v first, so that a rank has all tokens for "
            "some heads.",
        ),
        Hint(
            output_of(Slip(merged_as_it_came)),
            "Heads and tokens are mixed up before attention. What arrives is sorted by sender first, then by head: "
            "bring the heads to the front before you merge senders and tokens. reshape or view alone moves nothing.",
        ),
        Hint(
            output_of(Slip(way_out=cut_as_it_lay)),
            "Heads and tokens are mixed up behind attention. Rank r is to get the r-th part of the tokens, of all of "
            "your heads: split the dimension of the tokens, and bring that of the ranks to the front. reshape or view "
            "alone moves nothing.",
        ),
        Hint(
            output_of(Slip(merged_as_it_came, cut_as_it_lay)),
            "Heads and tokens are mixed up on both ways: reshape or view alone moves nothing in memory. Swap the "
            "dimensions of ranks and heads first.",
        ),
        Hint(
            output_of(Slip(every_nth_head, back_in_turn)),
            "Heads were dealt in turn, so a query's head no longer meets the head of keys that belongs to it. Deal "
            "neighbouring heads to a rank: the first n-th to rank 0, and so on.",
        ),
        Hint(
            without_gradient,
            "The output is right, but q, k and v have no gradient. Autograd does not see what a collective writes: put "
            "each exchange into a torch.autograd.Function with a backward of its own.",
        ),
        Hint(
            some_without_gradient,
            "The output is right, but not all of q, k and v have a gradient. Each of them has to go to the heads by an "
            "exchange that autograd knows.",
        ),
        Hint(
            gradients_of(Slip(back_out=merged_as_it_came)),
            "The output is right. In the backward pass the gradient of the output arrives sorted by sender first, then "
            "by head, and was merged as it came: bring the heads to the front first.",
        ),
        Hint(
            gradients_of(Slip(back_in=cut_as_it_lay)),
            "The output is right. In the backward pass the gradients of q, k and v were cut as they lay in memory: "
            "split the dimension of the tokens, and bring that of the ranks to the front.",
        ),
        Hint(
            gradients_of(Slip(back_out=merged_as_it_came, back_in=cut_as_it_lay)),
            "The output is right, and the dimensions of the gradients are in the wrong order: in the backward pass, "
            "too, swap ranks and heads. reshape or view alone moves nothing.",
        ),
        Hint(
            right_but_for_a_factor,
            "The output is right, and the gradients are a multiple of the right ones. Each rank has heads of its own, "
            "so there is nothing to add or average over ranks.",
        ),
    ),
)
