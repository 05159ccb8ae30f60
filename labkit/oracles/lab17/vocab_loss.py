"""Lab 17: the oracle of a cross-entropy over cut logits: PyTorch's own of the whole ones, and little that is sent.

That no rank has all logits is held twice: by its memory, and by what the ranks send.
"""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.exercises.lab17.vocab_loss import Logits
from labkit.oracles.lab17.vocab_hints import HINTS
from labkit.oracles.lab17.vocab_values import expected, loss_is_float32, tolerance
from labkit.spec import Budget, CaseRun, Observation, Oracle

ROOM_BYTES = 2**16
"""Beside the logits: numbers of which there is one a token."""
MOST_PARTS = 6
"""Tensors of the size of a rank's logits in float32 that may be there at once: the gradient, what autograd keeps, and
what it works on."""


def most_bytes(run: CaseRun[Logits]) -> int:
    """Three numbers of 8 bytes a token, gathered by all."""
    return max(24 * run.case.n_tokens * (run.case.n_ranks - 1), 1)


def most_memory(run: CaseRun[Logits]) -> int:
    return MOST_PARTS * run.case.own_bytes + ROOM_BYTES


def in_words(run: Observation) -> str:
    case = run.case
    also = f", ignore_index={case.ignore_index}" * bool(case.ignored) + f", z_weight={case.z_weight:g}" * bool(
        case.z_weight
    )
    more = (
        f", logits up to about {3 * case.scale:g}" * (case.scale > 10)
        + f", the last {case.padded} columns of all -inf" * bool(case.padded)
        + f", then backward of {case.dloss:g} times the loss" * (case.dloss != 1)
    )
    ranks = f"{case.n_ranks} rank{'s' * (case.n_ranks > 1)}"
    return (
        f"vocab_parallel_loss(comm, logits, targets{also}): {ranks}, each with {case.dtype} logits of shape "
        f"({case.n_tokens}, {case.columns}){more}"
    )


OFFSET = (
    "A target is a number in the whole vocabulary. Subtract the number of this rank's first column, and look a target "
    "up only where it is one of this rank's columns."
)

VOCAB_LOSS = Oracle(
    id="17-vocab-loss",
    expect=expected,
    tolerance=tolerance,
    judge=(inputs_untouched, loss_is_float32),
    call=in_words,
    axis="numbers of ranks, ignored and padded columns, z-loss, 16-bit logits, and logits of MBs",
    places={"loss": "loss", "grad": "gradient of the logits"},
    errors={
        "out of bounds": OFFSET,
        "index out of range in self": OFFSET,
        "modified by an inplace operation": "A collective writes into its tensor, and autograd still needs the old "
        "values. Write the loss as one torch.autograd.Function: autograd records nothing inside its forward.",
    },
    budgets=(
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes: of each token a rank sends at most three numbers, its maximum, its sum of exponentials "
            "and the target's logit. The logits stay at home.",
        ),
        Budget("collectives", 3, "Too many calls: three are enough, each for one number of every token."),
        Budget(
            "peak_bytes",
            most_memory,
            "A rank held something as wide as the whole vocabulary, or too many tensors as large as its logits. It "
            "needs its own columns alone: neither all logits nor a one-hot row of the vocabulary.",
        ),
    ),
    diagnose=HINTS,
)
