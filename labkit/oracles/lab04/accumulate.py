"""Lab 04: the oracle of accumulated gradients: those of one batch of all tokens, on all ranks, and little in memory."""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.exercises.lab04.accumulate import N_EPOCHS, N_VOCAB, WIDTH, Accumulation
from labkit.oracles.lab04.accumulate_hints import HINTS
from labkit.oracles.lab04.accumulate_values import CLOSE, how_far, right
from labkit.spec import Budget, CaseRun, MiB, Observation, Oracle

MOST_STEPS = 40
MEMORY_FACTOR = 1.3
"""As much as so many micro-batches take may be alive at once."""
SLACK_BYTES = MiB
"""For counts, losses and masks, and for Python's objects: in a notebook the ranks share a process."""


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


def called(run: Observation) -> str:
    """How it was called, on each rank and twice."""
    case = run.case
    ranks = f" on each of {case.n_ranks} ranks" if case.n_ranks > 1 else ""
    return (
        f"train_epoch(model, optimizer, <{case.n_micro} micro-batches>, n_accumulate={case.n_accumulate}, "
        f"max_norm={case.max_norm:g}, sum_over_ranks), twice{ranks}"
    )


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
    diagnose=HINTS,
)
