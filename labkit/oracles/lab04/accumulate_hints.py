"""Lab 04: what a student is told whose accumulated gradients are wrong, by the mistake that makes the same ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab04.accumulate import N_EPOCHS, Accumulation
from labkit.oracles.hints import once
from labkit.oracles.lab04.accumulate_mistakes import Loop, play
from labkit.oracles.lab04.accumulate_values import CLOSE, same
from labkit.spec import CANNOT_TELL, CaseRun, Hint

BLOWN_UP = 100.0
"""A step along a gradient this long leads to weights at which the last bit of a sum decides what comes next."""
MOST_HIDDEN = 512
"""The width up to which mistakes are played: training a wider network takes seconds, and tells no more."""


@once
def played(run: CaseRun[Accumulation], loop: Loop) -> dict[str, Any]:
    return play(run, loop)


def explains(made: dict[str, Any], got: dict[str, Any]) -> bool:
    """Whether a mistake as it was played makes what came back; steps after training has blown up are not compared."""
    return same(made, got) or all(
        leads_to(one["gradients"], other["gradients"]) for one, other in zip(made["ranks"], got["ranks"], strict=True)
    )


def leads_to(made: list[Tensor], got: list[Tensor]) -> bool:
    """Whether the gradients are the same, step by step, until one of them was too long for the next to be."""
    if len(made) != len(got):
        return False
    longest = 0.0
    for one, other in zip(made, got, strict=True):
        if compare(one, other, CLOSE):
            return longest > BLOWN_UP
        longest = max(longest, float(one.norm()))
    return longest > BLOWN_UP


def went(*loops: Loop) -> Callable[[CaseRun[Accumulation]], object]:
    """A diagnosis: one of these loops, which gives something else than the right one, explains everything."""

    def diagnose(run: CaseRun[Accumulation]) -> object:
        if run.case.n_hidden > MOST_HIDDEN:
            return CANNOT_TELL
        return any(explains(made := played(run, loop), run.got) and not same(made, run.expected) for loop in loops)

    return diagnose


def n_found(run: CaseRun[Accumulation]) -> int:
    return len(run.got["ranks"][0]["gradients"])


def means(of: str) -> Callable[[Any], float]:
    """The divisor of a micro-batch whose mean loss is divided by the number of micro-batches."""
    return lambda counts: counts.own * (counts.n_micro if of == "window" else counts.case.n_accumulate)


MEANS = (means("window"), means("n_accumulate"))


def own(counts: Any) -> float:
    return counts.own


def by_rank(counts: Any) -> float:
    return counts.rank


def padded(counts: Any) -> float:
    return counts.padded


def not_zero(counts: Any) -> float:
    return counts.not_zero


def by_epoch(counts: Any) -> float:
    return counts.epoch


def so_far(counts: Any) -> float:
    return counts.so_far


def every(counts: Any) -> float:
    return counts.every


def one_token(counts: Any) -> float:
    return 1.0


SHARES = ("sum", "average", "never")
AT_THE_END: dict[str, Any] = {"divisor": one_token, "afterwards": every}
"""The sum of the gradients is divided instead of each loss: the same, unless something stays in .grad."""
LEAKS = tuple(Loop(rest="leak", divisor=divisor) for divisor in (Loop().divisor, *MEANS, by_rank))

HINTS = (
    Hint(
        lambda run: n_found(run) == 0,
        "The optimizer never stepped.",
    ),
    Hint(
        went(Loop(clear="before the step"), *(Loop(divisor=d, clear="before the step") for d in (*MEANS, own))),
        "The gradients are cleared just before the step, so the weights never move. Clear them after the step, or "
        "before the first backward of a window.",
    ),
    Hint(
        went(Loop(divisor=own, rest="leak"), Loop(divisor=own, rest="leak", share="never")),
        "Two mistakes at once, those of the first loop: each micro-batch's mean loss is added without any weight, "
        "and the gradients of a short last window stay in .grad for the next epoch.",
    ),
    Hint(
        went(*LEAKS),
        "The last window of the epoch is short and never gets its step, so its gradients stay in .grad and leak "
        "into the next epoch. Take a step at the end of the epoch too.",
    ),
    Hint(
        went(*(Loop(rest="drop", divisor=divisor) for divisor in (Loop().divisor, *MEANS))),
        "The last window of the epoch is short and was dropped: it gets a step like the others.",
    ),
    Hint(
        went(Loop(clear="never"), Loop(**AT_THE_END, clear="never"), *(Loop(divisor=d, clear="never") for d in MEANS)),
        "The gradients are never cleared, so each step adds to those of all steps before.",
    ),
    Hint(
        went(
            Loop(clear="each epoch"),
            Loop(**AT_THE_END, clear="each epoch"),
            *(Loop(divisor=d, clear="each epoch") for d in MEANS),
        ),
        "The gradients are cleared at the start of the epoch alone, so each step adds to those of the steps before "
        "it. Clear them after every step.",
    ),
    Hint(
        went(Loop(clear="each micro-batch"), *(Loop(divisor=d, clear="each micro-batch") for d in (*MEANS, own))),
        "Only the last micro-batch's gradient is left at the step: clear once a window, not before every backward.",
    ),
    Hint(
        went(*(Loop(divisor=divisor, share=share) for divisor in MEANS for share in SHARES)),
        "This is a mean of means: every micro-batch counts alike, so a token of a short text counts more than one "
        "of a long text. Divide each sum of token losses by the tokens of the whole window, on all ranks.",
    ),
    Hint(
        went(*(Loop(divisor=own, share=share) for share in SHARES)),
        "The mean losses of the micro-batches are added up, so the gradient grows with their number. Divide each "
        "sum of token losses by the tokens of the whole window.",
    ),
    Hint(
        went(
            *(Loop(divisor=by_rank, share=share) for share in ("sum", "average")),
            Loop(divisor=one_token, afterwards=by_rank),
        ),
        "Each rank divides by its own tokens. Ranks have different numbers of them: sum the count over the ranks "
        "before you divide.",
    ),
    Hint(
        went(Loop(share="never"), Loop(share="never", divisor=by_rank)),
        "The gradients were not summed over the ranks, so each rank goes its own way. The count of tokens alone is "
        "not enough: every .grad goes through sum_over_ranks, too.",
    ),
    Hint(
        went(Loop(share="average")),
        "The gradients are divided by the number of ranks as well. The count of tokens is that of all ranks "
        "already, so a sum over the ranks is enough.",
    ),
    Hint(
        went(Loop(share="each micro-batch"), Loop(share="each micro-batch", divisor=by_rank)),
        "The gradients were summed over the ranks after every micro-batch, so what had been summed before was "
        "summed again. Sum them once, after the last micro-batch of the window.",
    ),
    Hint(
        went(Loop(clip="micro-batch")),
        "The gradient was clipped after each micro-batch. Clip the gradient of the whole window, once, just before "
        "the step.",
    ),
    Hint(
        went(Loop(clip="mine")),
        "Each rank clipped its own part before the sum over the ranks. The norm that counts is that of the sum.",
    ),
    Hint(
        went(Loop(clip="never")),
        "The gradient was not clipped: its norm may be at most max_norm at the step.",
    ),
    Hint(
        went(Loop(clip="values")),
        "Each number of the gradient was clipped. max_norm limits the norm of the whole gradient.",
    ),
    Hint(
        went(Loop(clip="each parameter")),
        "Each parameter's gradient was clipped by itself. max_norm limits the norm of all of them together.",
    ),
    Hint(
        went(Loop(divisor=one_token, clip="undivided", afterwards=every)),
        "The gradient was clipped before it was divided by the number of tokens. max_norm limits the gradient that "
        "the optimizer steps with, so divide first.",
    ),
    Hint(
        went(Loop(divisor=padded), Loop(divisor=not_zero)),
        "Padding was counted as tokens. A token counts where its label is not -100.",
    ),
    Hint(
        went(Loop(divisor=by_epoch)),
        "The gradients are divided by the tokens of the whole epoch: only those of the window belong to a step.",
    ),
    Hint(
        went(Loop(divisor=so_far), Loop(divisor=one_token, afterwards=so_far)),
        "The count of tokens goes on from window to window. Set it back to 0 after each step.",
    ),
    Hint(
        went(Loop(divisor=one_token)),
        "The gradient is that of the sum of all token losses: it was never divided by the number of tokens.",
    ),
    Hint(
        went(Loop(rescale=True)),
        "The accumulated gradients are divided after every micro-batch, so the first ones are divided several "
        "times. Divide once, at the end of the window, or divide each loss before its backward.",
    ),
    Hint(
        went(*(Loop(early=True, divisor=d, rest=rest) for d in (every, *MEANS, own) for rest in ("step", "leak"))),
        "The optimizer steps after the first micro-batch already. enumerate counts from 0: a window is full when "
        "(i + 1) % n_accumulate is 0.",
    ),
    Hint(
        lambda run: n_found(run) == N_EPOCHS * run.case.n_micro > len(run.expected["ranks"][0]["gradients"]),
        "The optimizer steps after every micro-batch: n_accumulate of them make one step.",
    ),
)
