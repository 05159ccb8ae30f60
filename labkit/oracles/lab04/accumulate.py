"""Lab 04: what is true of accumulated gradients: those of one batch of all tokens, on all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab04.accumulate import N_EPOCHS, N_VOCAB, WIDTH, Accumulation
from labkit.oracles.hints import once
from labkit.oracles.lab04.accumulate_mistakes import Loop, play
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, MiB, Observation, Oracle, Tolerance

CLOSE = Tolerance(atol=2e-5, rtol=1e-3)
"""float32 sums over tokens and ranks in another order."""
MOST_STEPS = 40
MEMORY_FACTOR = 1.3
"""As much as so many micro-batches take may be alive at once."""
SLACK_BYTES = MiB
"""For counts, losses and masks, and for Python's objects: in a notebook the ranks share a process."""
BLOWN_UP = 100.0
"""A step along a gradient this long leads to weights at which the last bit of a sum decides what comes next."""
MOST_HIDDEN = 512
"""The width up to which mistakes are played: training a wider network takes seconds, and tells no more."""


@once
def played(run: CaseRun[Accumulation], loop: Loop) -> dict[str, Any]:
    return play(run, loop)


def right(run: CaseRun[Accumulation]) -> dict[str, Any]:
    return play(run, Loop())


def peak_bytes(run: CaseRun[Accumulation]) -> float:
    """What MEMORY_FACTOR micro-batches take in forward and backward, the gradients, and a copy of them for each step.

    A token has three vectors of the hidden layer at the peak, tanh's result and the gradients on its two sides, and a
    few of the others. Gradients may be there as sums, by rank and as one vector.
    """
    case = run.case
    n_tokens = max(x.numel() for part in run.tree["ranks"] for x in part["x"])
    n_weights = sum(value.numel() for value in run.tree["weights"])
    token_bytes = 4 * (3 * case.n_hidden + 2 * WIDTH + 4 * N_VOCAB)
    return MEMORY_FACTOR * n_tokens * token_bytes + 4 * n_weights * (6 + N_EPOCHS * case.n_steps) + SLACK_BYTES


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether every rank has the same gradients and weights."""
    return compare(one, other, CLOSE) is None


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


def called(run: Observation) -> str:
    """How it was called, on each rank and twice."""
    case = run.case
    ranks = f" on each of {case.n_ranks} ranks" if case.n_ranks > 1 else ""
    return (
        f"train_epoch(model, optimizer, <{case.n_micro} micro-batches>, n_accumulate={case.n_accumulate}, "
        f"max_norm={case.max_norm:g}, sum_over_ranks), twice{ranks}"
    )


def how_far(run: CaseRun[Accumulation]) -> str | None:
    """Where the ranks first leave the right path, and by which factor."""
    want, have = run.expected["ranks"][0]["gradients"], run.got["ranks"][0]["gradients"]
    if len(want) != len(have):
        return f"the optimizer stepped {len(have)} times in {N_EPOCHS} epochs; {len(want)} steps are right"
    for step, (one, other) in enumerate(zip(want, have, strict=True), 1):
        if compare(one, other, CLOSE):
            factor = float(other @ one / (one @ one))
            cosine = float(other @ one / (one.norm() * other.norm()).clamp_min(1e-30))
            return (
                f"at step {step} the gradient is {factor:.3g} times as long in the right direction; cosine {cosine:.4f}"
            )
    return None


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

ACCUMULATE = Oracle(
    id="04-accumulate",
    expect=right,
    tolerance=CLOSE,
    judge=(inputs_untouched,),
    call=called,
    places={
        "gradients": "number of steps of the optimizer",
        **{f"gradients.{i}": f"gradient at step {i + 1}" for i in range(MOST_STEPS)},
        "weights": "weights after two epochs",
    },
    axis="numbers of micro-batches, ranks and texts",
    fact=how_far,
    errors={
        "does not require grad and does not have a grad_fn": "backward needs the loss as the model computed it. What "
        "sum_over_ranks returns has no graph, and neither has what went through item() or detach(): sum the "
        "gradients over the ranks, not the loss.",
        "must be real number, not NoneType": "A parameter has no gradient here, because no backward went before. After "
        "the loop, take a step only if there are micro-batches left.",
    },
    budgets=(
        Budget(
            "peak_bytes",
            peak_bytes,
            "The values are right, but activations of several micro-batches were alive at once, so nothing is saved. "
            "Call backward for each micro-batch before the next one goes forward, and put no micro-batches together.",
        ),
    ),
    diagnose=(
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
            went(
                Loop(clear="never"), Loop(**AT_THE_END, clear="never"), *(Loop(divisor=d, clear="never") for d in MEANS)
            ),
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
    ),
)
