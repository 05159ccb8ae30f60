"""Lab 19: attention whose heads were traded for tokens, played in one process with every rank's tensors at hand: as it
is right, and as the usual mistakes have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab19.ulysses import NAMES, Trade, causal_attention
from labkit.oracles.hints import Condition, once
from labkit.oracles.lab19.scaled import gradients_scaled
from labkit.oracles.lab19.whole_attention import CLOSE
from labkit.spec import CANNOT_TELL, CaseRun

Parts = list[Tensor]
"""Of each rank one."""
GRADIENTS = ("d_q", "d_k", "d_v")
Way = Callable[[Parts], Parts]


def to_heads(parts: Parts) -> Parts:
    """(heads, length, d) of every rank -> (heads / n, all tokens, d) of every rank."""
    n = len(parts)
    return [torch.cat([part.chunk(n)[rank] for part in parts], 1) for rank in range(n)]


def to_tokens(parts: Parts) -> Parts:
    """The opposite."""
    n = len(parts)
    return [torch.cat([part.chunk(n, 1)[rank] for part in parts]) for rank in range(n)]


def merged_as_it_came(parts: Parts) -> Parts:
    """As `to_heads`, but what came, (senders, heads, tokens, d), is cut anew without senders and heads swapped."""
    n, (heads, length, d) = len(parts), parts[0].shape
    return [
        torch.stack([part.chunk(n)[rank] for part in parts]).reshape(heads // n, n * length, d) for rank in range(n)
    ]


def cut_as_it_lay(parts: Parts) -> Parts:
    """As `to_tokens`, but pieces are cut along the memory, heads first, in place of along the tokens."""
    n, (heads, tokens, d) = len(parts), parts[0].shape
    return [torch.cat([part.reshape(n, heads, tokens // n, d)[rank] for part in parts]) for rank in range(n)]


def every_nth_head(parts: Parts) -> Parts:
    """As `to_heads`, with heads dealt in turn."""
    n = len(parts)
    return [torch.cat([part[rank::n] for part in parts], 1) for rank in range(n)]


def back_in_turn(parts: Parts) -> Parts:
    """What puts heads that were dealt in turn back into their places."""
    return [torch.stack(list(one.chunk(len(parts))), 1).flatten(0, 1) for one in to_tokens(parts)]


@dataclass(frozen=True)
class Slip:
    """The four ways: in before attention, out behind it, and those of their gradients in the backward pass."""

    way_in: Way = to_heads
    way_out: Way = to_tokens
    back_out: Way = to_heads
    back_in: Way = to_tokens


def drawn(run: CaseRun[Trade], name: str) -> Parts:
    return [one[name].double() for one in run.tree["ranks"]]


@once
def played(run: CaseRun[Trade], slip: Slip = Slip()) -> list[dict[str, Tensor]]:
    """By rank, the output and the gradients of q, k and v."""
    n = run.case.n_ranks
    given = [[part.requires_grad_() for part in slip.way_in(drawn(run, name))] for name in NAMES]
    outs = [causal_attention(*(parts[rank] for parts in given)) for rank in range(n)]
    d_outs = slip.back_out(drawn(run, "d_out"))
    grads = [torch.autograd.grad(outs[rank], [parts[rank] for parts in given], d_outs[rank]) for rank in range(n)]
    found = {"out": slip.way_out([out.detach() for out in outs])}
    for name, parts in zip(GRADIENTS, zip(*grads, strict=True), strict=True):
        found[name] = slip.back_in(list(parts))
    names = ("out",) if run.case.forward_only else ("out", *GRADIENTS)
    return [{name: found[name][rank].float() for name in names} for rank in range(n)]


@once
def on_own_tokens(run: CaseRun[Trade]) -> Parts:
    """The output of attention to the rank's own tokens alone."""
    return [causal_attention(*some).float() for some in zip(*(drawn(run, name) for name in NAMES), strict=True)]


def expect(run: CaseRun[Trade]) -> dict[str, Any]:
    if run.case.is_refused:
        return {"ranks": [{"refused": "ValueError"}] * run.case.n_ranks}
    return {"ranks": played(run)}


def output_is(made: Callable[[CaseRun[Trade]], Parts]) -> Condition:
    """A hint's condition: the output is what a mistake makes; CANNOT_TELL where it makes the right one."""

    def when(run: CaseRun[Trade]) -> Any:
        if run.case.is_refused:
            return False
        wrong, right = made(run), [one["out"] for one in run.expected["ranks"]]
        if compare(right, wrong, CLOSE) is None:
            return CANNOT_TELL
        return compare(wrong, [one["out"] for one in run.got["ranks"]], CLOSE) is None

    return when


def output_of(slip: Slip) -> Condition:
    return output_is(lambda run: [one["out"] for one in played(run, slip)])


def outputs_are_right(run: CaseRun[Trade]) -> bool:
    pairs = zip(run.expected["ranks"], run.got["ranks"], strict=True)
    return not run.case.is_refused and all(compare(a["out"], b["out"], CLOSE) is None for a, b in pairs)


def gradients_of(slip: Slip) -> Condition:
    """A hint's condition: the output is right, and the gradients are what a mistake makes."""

    def when(run: CaseRun[Trade]) -> Any:
        if run.case.forward_only or not outputs_are_right(run):
            return False
        wrong = played(run, slip)
        if compare(run.expected["ranks"], wrong, CLOSE) is None:
            return CANNOT_TELL
        return compare(wrong, run.got["ranks"], CLOSE) is None

    return when


def without_gradient(run: CaseRun[Trade]) -> bool:
    """The output is right, and none of q, k and v has a gradient."""
    return outputs_are_right(run) and all(one[name] is None for one in run.got["ranks"] for name in GRADIENTS)


def some_without_gradient(run: CaseRun[Trade]) -> Any:
    """The output is right, and one or two of q, k and v have no gradient."""
    if run.case.forward_only:
        return CANNOT_TELL
    return outputs_are_right(run) and any(one[name] is None for one in run.got["ranks"] for name in GRADIENTS)


def right_but_for_a_factor(run: CaseRun[Trade]) -> Any:
    """The output is right, and each gradient is n or 1/n times the right one, or their squares."""
    return outputs_are_right(run) and gradients_scaled(GRADIENTS, powers=(1, -1, 2, -2))(run)


def raised(run: CaseRun[Trade]) -> set[str]:
    """What the ranks raised in a case that is to be refused."""
    return {one["refused"] for one in run.got["ranks"]}


def looks_at_queries_only(run: CaseRun[Trade]) -> Any:
    """Only where the heads of queries can be dealt is a refusal missing."""
    return run.case.is_refused and raised(run) != {"ValueError"} and run.case.heads % run.case.n_ranks == 0


def refused_in_another_way(run: CaseRun[Trade]) -> bool:
    return run.case.is_refused and "ValueError" not in raised(run) and "nothing" not in raised(run)


def not_refused(run: CaseRun[Trade]) -> bool:
    return run.case.is_refused and raised(run) != {"ValueError"}


def refused_here_and_there(run: CaseRun[Trade]) -> bool:
    """No ValueError, or one after something was sent: for answers that do now one and now the other."""
    return run.case.is_refused and (raised(run) != {"ValueError"} or run.measured["bytes_sent"] > 0)


def refused_too_late(run: CaseRun[Trade]) -> bool:
    return run.case.is_refused and raised(run) == {"ValueError"} and run.measured["bytes_sent"] > 0
