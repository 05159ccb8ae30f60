"""Lab 17: what a student is told whose cross-entropy over cut logits is wrong: first the loss, then its gradient."""

from __future__ import annotations

from typing import Any

from labkit.compare import compare
from labkit.exercises.lab17.vocab_loss import Logits
from labkit.oracles.lab17.vocab_mistakes import Plan, targets, went_as
from labkit.oracles.lab17.vocab_values import by_torch, tolerance
from labkit.spec import CANNOT_TELL, CaseRun, Hint


def is_finite(run: CaseRun[Logits]) -> bool:
    return all(bool(one["loss"].isfinite().all()) and bool(one["grad"].isfinite().all()) for one in run.got["ranks"])


def ignored_learn(run: CaseRun[Logits]) -> Any:
    """Only the rows of ignored tokens are wrong. CANNOT_TELL where there are none, or where some come back only."""
    case = run.case
    grads = [one["grad"] for one in run.got["ranks"]]
    if not case.ignored or grads[0].shape != (case.n_tokens, case.columns):
        return CANNOT_TELL
    counted = targets(run) != case.ignore_index
    pairs = list(zip(run.expected["ranks"], run.got["ranks"], strict=True))
    right = all(compare(a["loss"], b["loss"], tolerance(run)) is None for a, b in pairs)
    rows = all(compare(a["grad"][counted], b["grad"][counted], tolerance(run)) is None for a, b in pairs)
    return right and rows and any(bool(grad[~counted].any()) for grad in grads)


def all_padding(case: Logits) -> bool:
    return case.padded >= case.columns


def rounded(run: CaseRun[Logits]) -> bool:
    """16-bit logits, and a loss that is nearly right."""
    loss = float(by_torch(run)[0])
    return run.case.dtype == "bfloat16" and all(
        abs(float(one["loss"]) - loss) < 0.05 * abs(loss) for one in run.got["ranks"]
    )


OWN_MAXIMUM = Plan(top="own")
OWN_MAXIMUM_ADDED = Plan(top="own", subtracts_top=False)

HINTS = (
    Hint(
        lambda run: any(one["grad"] is None for one in run.got["ranks"]),
        "The logits have no gradient after loss.backward(). Autograd does not see what a collective writes: give "
        "the gradient in the backward of a torch.autograd.Function.",
    ),
    Hint(
        lambda run: not is_finite(run) and run.case.scale > 50,
        "exp overflows where the logits are large: subtract the maximum of the token's logits first. That of all "
        'ranks: one all-reduce with op="max".',
    ),
    Hint(
        lambda run: not is_finite(run) and all_padding(run.case),
        "One rank has nothing but padding, so its own maximum is -inf, and -inf - (-inf) is NaN. Subtract the "
        "maximum over all ranks, or 0 where a rank's own maximum is -inf.",
    ),
    Hint(
        went_as(OWN_MAXIMUM, OWN_MAXIMUM_ADDED, keys=("loss",), with_padding=False),
        "Each rank subtracted its own maximum, so the sums that are added up have different scales. Subtract the "
        "maximum over all ranks, or multiply each sum by exp(own maximum - maximum of all) first.",
    ),
    Hint(
        went_as(Plan(sums="own"), Plan(sums="own", top="own"), keys=("loss",)),
        "The sum of exponentials is that of the rank's own columns. Add up the sums of all ranks.",
    ),
    Hint(
        went_as(Plan(sums="own", picks="own"), Plan(sums="own", picks="own", top="own"), keys=("loss",)),
        "Each rank computed the loss of its own columns alone. Sums of exponentials and targets' logits are added "
        "up over the ranks.",
    ),
    Hint(
        went_as(Plan(picks="own"), Plan(picks="own", subtracts_top=False), keys=("loss",)),
        "Only the rank that has the target's column knows its logit. The others put in 0, and an all-reduce adds up.",
    ),
    Hint(
        went_as(
            Plan(picks="nearest"),
            Plan(picks="nearest", subtracts_top=False),
            Plan(picks="nearest", pick_grad_factor="ranks"),
            keys=("loss",),
        ),
        "A rank that does not have the target's column put in the logit of another column, the one that its "
        "clamped index points at. Put in 0 there.",
    ),
    Hint(
        went_as(Plan(subtracts_top=False), keys=("loss",)),
        "The maximum was subtracted under the exponentials, but not from the target's logit. The loss is log(sum) "
        "+ maximum - logit.",
    ),
    Hint(
        went_as(Plan(mean_of="all", z_of="all"), Plan(mean_of="all"), keys=("loss",)),
        "The mean goes over the tokens that count: divide by the number of targets other than ignore_index.",
    ),
    Hint(
        went_as(Plan(mean_of="1"), keys=("loss",)),
        "The loss is the sum over the tokens: divide it by the number of those that count.",
    ),
    Hint(
        went_as(Plan(mean_of="ranks"), keys=("loss",)),
        "The loss is too small by the number of ranks. All ranks have the same tokens: count them once.",
    ),
    Hint(
        went_as(
            Plan(counts_ignored=True, mean_of="all"),
            Plan(counts_ignored=True),
            keys=("loss",),
        ),
        "Tokens whose target is ignore_index take part in the loss. Leave them out, also where some rank has a "
        "column of that number.",
    ),
    Hint(
        went_as(Plan(z_factor=0.0), keys=("loss",)),
        "The z-loss is missing: z_weight times the mean of (log Z)^2, over the tokens that count.",
    ),
    Hint(
        went_as(Plan(z_adds_top=False), keys=("loss",)),
        "The z-loss was taken of the logarithm after the maximum had been subtracted. log Z is log(sum) + maximum.",
    ),
    Hint(
        went_as(Plan(z_squared=False), keys=("loss",)),
        "The z-loss is z_weight times the square of log Z.",
    ),
    Hint(
        went_as(Plan(z_of="all"), keys=("loss",)),
        "The z-loss of ignored tokens does not count either.",
    ),
    Hint(
        rounded,
        "The loss is a little off where the logits are in bfloat16: it was computed in 16 bits. Convert this "
        "rank's logits to float32 first, and return a float32 loss.",
    ),
    Hint(
        went_as(
            Plan(grad_factor="ranks"),
            Plan(sum_grad_factor="ranks"),
            Plan(pick_grad_factor="ranks", sum_grad_factor="ranks"),
        ),
        "The loss is right, and the gradient is too large by the number of ranks. Every rank has the same loss, so "
        "the backward pass sums nothing: the gradient of a sum over ranks is handed on as it is.",
    ),
    Hint(
        went_as(Plan(pick_grad_factor=0.0)),
        "The loss is right. The gradient lacks the part of the target's logit: it is the softmax, less 1 at the "
        "target, on the rank that has it.",
    ),
    Hint(
        went_as(Plan(pick_grad_everywhere=True), with_padding=False),
        "The loss is right. In the gradient 1 is subtracted on every rank: at the target on the rank that has its "
        "column, and on the others at the column that the clamped index points at.",
    ),
    Hint(
        went_as(Plan(sums_grads=True)),
        "The loss is right, and the gradients were summed over the ranks, which have different columns. A rank "
        "that knows Z computes the gradient of its own columns alone: the backward pass sends nothing.",
    ),
    Hint(
        ignored_learn,
        "The loss is right, and the gradient as well, but for tokens whose target is ignore_index: set their rows "
        "to 0.",
    ),
    Hint(
        went_as(Plan(sum_grad_factor=0.0)),
        "The loss is right. The gradient lacks the part of the sum of exponentials, which is the softmax.",
    ),
    Hint(
        went_as(Plan(z_grad_factor=0.0), Plan(z_grad_factor=0.5)),
        "The loss is right, and the gradient of its z-loss is not: it is 2 z_weight log Z times the softmax.",
    ),
    Hint(
        went_as(Plan(uses_dloss=False)),
        "backward ignores the gradient that comes in: multiply the result by it.",
    ),
    Hint(
        went_as(
            Plan(grad_factor="count"),
            Plan(grad_factor="1/count"),
            Plan(pick_grad_factor="count"),
            Plan(sum_grad_factor="count"),
        ),
        "The loss is right. Its gradient has to be divided by the number of tokens that count, once: the softmax "
        "as well as the 1 at the target.",
    ),
)
