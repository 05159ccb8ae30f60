"""Lab 13: what is true of cross-entropy in place.

That no second matrix as large as the logits is in use is held by bytes: the gradient lies where the logits were, and
reads and writes beyond those of that one matrix are over the budget. A matrix that nobody writes or reads costs no
memory worth the name.
"""

from __future__ import annotations

import torch

from labkit.exercises.lab13.cross_entropy import LOW_ROW, MASKED_ROW, Tokens
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import ASKS_THE_HOST, BY_KERNELS, NO_OTHER, SAFE, at_full_size, compiled
from labkit.oracles.lab13.cross_entropy_mistakes import (
    by_torch,
    count_rounded,
    divided_by_rows,
    divided_twice,
    dloss_takes_part_wrongly,
    everything_is_nan,
    first_row_alone,
    gradient_is_right,
    has_wrong_sign,
    ignored_keep_logits,
    ignored_take_part,
    ignores_dloss,
    is_nan_in,
    is_sum,
    lacks_the_maximum,
    last_block_left_out,
    loss_is_wrong,
    loss_rounded,
    mean_over_all,
    not_divided,
    one_from_rounded,
    one_is_elsewhere,
    one_is_not_divided,
    rows_elsewhere,
    rows_left_out,
    scaled_in_part,
    sums_are_wrong,
    target_read_too_late,
    writes_behind_the_row,
    wrong_count,
)
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle, Tolerance
from labkit.tree import same

PER_TOKEN_BYTES = 64
"""Per row: its target, loss, statistics and the like, read or written a few times."""
TARGET_BYTES = 8
SHARE = 1.02
"""For single numbers that each program of the backward pass reads."""


def expected(run: CaseRun[Tokens]) -> dict:
    loss, dlogits = by_torch(run)
    return {"loss": loss.float(), "dlogits": dlogits.to(run.tree["logits"].dtype)}


def tolerances(run: CaseRun[Tokens]) -> dict[str, Tolerance]:
    """A loss is a difference of numbers near 300 in float32; a gradient may be rounded to the dtype twice."""
    eps = torch.finfo(run.tree["logits"].dtype).eps
    return {"loss": Tolerance(rtol=1e-5, atol=2e-4), "dlogits": Tolerance(rtol=max(2.02 * eps, 2e-4), atol=1e-7)}


def in_students_names(run: Observation) -> str:
    call = as_call("cross_entropy", run.tree["logits"], run.tree["targets"], ignore_index=run.case.ignore_index)
    return call + (f", then backward with dloss = {run.case.dloss}" if run.case.dloss != 1 else "")


def gradient_is_in_place(run: CaseRun) -> str | None:
    if same(run.back["logits"], run.got["dlogits"]):
        return None
    return "the gradient is not where the logits were: it lies in other memory, as large as theirs"


gradient_is_in_place.hint = (
    "Write the gradient over the logits and return this tensor from backward: a second matrix as large is what this "
    "kernel is to save."
)


def targets_untouched(run: CaseRun) -> str | None:
    return None if same(run.tree["targets"], run.back["targets"]) else "the targets were changed"


targets_untouched.hint = "The targets are only read; whoever made them may still need them."


def n_passes(tree: dict) -> int:
    """Twice forward, and once backward where there is something to multiply with."""
    return 2 if float(tree["dloss"]) == 1 else 3


def load_bytes(run: CaseRun[Tokens]) -> float:
    """The logits in each pass, and a few numbers a row; the program of each row may count the targets for itself."""
    counts = TARGET_BYTES * run.case.n_tokens**2
    return SHARE * n_passes(run.tree) * run.case.n_bytes + PER_TOKEN_BYTES * run.case.n_tokens + counts


def store_bytes(run: CaseRun[Tokens]) -> float:
    """The gradient over the logits, in each pass but the first, and a few numbers a row."""
    return (n_passes(run.tree) - 1) * run.case.n_bytes + PER_TOKEN_BYTES * run.case.n_tokens


MOVES_ONCE = (
    "Forward: one pass for the maximum and the sum together, one for the gradient. Backward: load and store nothing "
    "where the incoming gradient is 1."
)
CROSS_ENTROPY = Oracle(
    id="13-cross-entropy",
    expect=expected,
    tolerance=tolerances,
    judge=(gradient_is_in_place, targets_untouched),
    budgets=(
        *SAFE,
        BY_KERNELS,
        Budget("load_bytes", load_bytes, MOVES_ONCE),
        Budget("store_bytes", store_bytes, MOVES_ONCE),
        Budget("atomic_bytes", lambda run: PER_TOKEN_BYTES * run.case.n_tokens, "Atomics on single numbers do."),
        Budget("launches", 3, "Count the targets, go over the rows, scale the gradient: three launches."),
        *compiled(),
    ),
    full_size=at_full_size(),
    call=in_students_names,
    diagnose=(
        NO_OTHER,
        ASKS_THE_HOST,
        Hint(
            everything_is_nan,
            "All rows that count are NaN, also one whose logits are neither large nor far below 0: look at the number "
            "of tokens that count. New memory holds anything until a kernel stores to it, and tl.atomic_add adds to "
            "what is there.",
        ),
        Hint(
            lambda run: is_nan_in(run.got, 0),
            "exp overflows where the logits are large. Subtract the row's maximum first: the factor that this brings "
            "in cancels.",
        ),
        Hint(
            writes_behind_the_row,
            "A program writes past the end of its row, over the logits of the next one: mask the stores, too.",
        ),
        Hint(
            lambda run: is_nan_in(run.got, MASKED_ROW),
            "A block of nothing but -inf leaves the running maximum at -inf, and -inf - (-inf) is NaN. Where the "
            "maximum is -inf, subtract 0.",
        ),
        Hint(
            lambda run: is_nan_in(run.got, LOW_ROW),
            "Logits far below 0 give NaN: the running maximum has to start at -inf, not at 0.",
        ),
        Hint(
            rows_left_out,
            "Rows that count still hold their logits: no program writes to them. Each row has one, so the grid is "
            "(n_tokens,).",
        ),
        Hint(
            rows_elsewhere,
            "Some rows are never written, and programs reach into one another's rows or past the last one: row r "
            "begins r * vocab elements past the start of the logits.",
        ),
        Hint(
            first_row_alone,
            "Only the first row is right: row r begins r * vocab elements past the start of the logits.",
        ),
        Hint(
            last_block_left_out,
            "The last columns of a row still hold their logits: a loop over a row has to end at vocab, not at a "
            "multiple of BLOCK_SIZE, with the last block masked.",
        ),
        Hint(
            ignored_keep_logits,
            "Rows that do not count still hold their logits. Their gradient is 0, and it has to be written.",
        ),
        Hint(
            dloss_takes_part_wrongly,
            "The incoming gradient takes part wrongly: backward multiplies by it, once.",
        ),
        Hint(
            ignored_take_part,
            "Rows whose target is ignore_index get a gradient: write zeros over them, and leave them out of the loss.",
        ),
        Hint(
            mean_over_all,
            "The mean goes over the tokens that count: divide by the number of targets other than ignore_index.",
        ),
        Hint(
            lambda run: not gradient_is_right(run) and not_divided(run),
            "The loss is a mean, so its gradient is that of one row divided by the number of tokens that count.",
        ),
        Hint(
            lambda run: not gradient_is_right(run) and divided_twice(run),
            "The gradient is divided by the number of tokens twice: once in the forward pass is enough.",
        ),
        Hint(
            lambda run: not gradient_is_right(run) and ignores_dloss(run),
            "backward ignores the gradient that comes in: multiply by it. It is 1 only where nothing follows the loss.",
        ),
        Hint(
            count_rounded,
            "The number of tokens that count was rounded: bfloat16 has no 257. Keep it in float32: "
            "logits.new_empty(1, dtype=torch.float32).",
        ),
        Hint(
            one_from_rounded,
            "The probability was rounded to the dtype of the logits before 1 was subtracted at the target. Near 1 that "
            "leaves few digits of the difference: compute it in float32, and round when it is stored.",
        ),
        Hint(
            lambda run: gradient_is_right(run) and loss_rounded(run),
            "The loss was rounded to the dtype of the logits. Keep the loss of each row, and their sum, in float32: "
            "torch.empty(n_tokens, dtype=torch.float32).",
        ),
        Hint(
            wrong_count,
            "The tokens that count are miscounted: count the targets other than ignore_index, in all blocks of them, "
            "without the lanes past the last one.",
        ),
        Hint(
            scaled_in_part,
            "A part of the gradient is not multiplied by the one that comes in: round the number of programs up, "
            "triton.cdiv(n, BLOCK_SIZE).",
        ),
        Hint(
            one_is_not_divided,
            "The 1 at the target is to be divided by the number of tokens that count, as the probability is.",
        ),
        Hint(
            has_wrong_sign,
            "The gradient has the wrong sign: it is the probability, less 1 at the target.",
        ),
        Hint(
            lambda run: not gradient_is_right(run) and one_is_elsewhere(run),
            "The 1 is not subtracted at the target alone. Compare the target with the column counted from the start of "
            "the row, in every block.",
        ),
        Hint(
            lambda run: not gradient_is_right(run) and sums_are_wrong(run),
            "The probabilities of a row do not sum up to 1. When the maximum rises, multiply the sum by "
            "exp(old - new), and let lanes past the end be -inf.",
        ),
        Hint(
            lambda run: gradient_is_right(run) and bool(run.got["loss"].isnan()),
            "The gradient is right, and the loss is NaN: a row that does not count has a loss too, and it is 0.",
        ),
        Hint(
            lambda run: gradient_is_right(run) and target_read_too_late(run),
            "The loss holds a gradient in place of a logit: read the target's logit before the row is overwritten.",
        ),
        Hint(
            lambda run: gradient_is_right(run) and is_sum(run),
            "The loss is the sum over the tokens: divide it by the number of those that count.",
        ),
        Hint(
            lambda run: gradient_is_right(run) and divided_by_rows(run),
            "The loss was divided by the number of all rows: `mean` does that. Divide the sum once, by the number of "
            "tokens that count.",
        ),
        Hint(
            lambda run: gradient_is_right(run) and lacks_the_maximum(run),
            "The loss lacks the maximum: the sum is relative to it, so the logarithm is top + log(total).",
        ),
        Hint(
            lambda run: gradient_is_right(run) and loss_is_wrong(run),
            "The gradient is right and the loss is not. Of a row that counts it is top + log(total), less the logit of "
            "the target, divided by the number of such rows.",
        ),
    ),
)
