"""Lab 05: what is true of a loss in chunks, and what the usual mistakes look like."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab05.chunked_loss import Head, run_head
from labkit.oracles.calls import as_call
from labkit.oracles.lab05.chunked_mistakes import (
    averages_means,
    dx_from,
    dx_like,
    each_row_scaled,
    ignored_as_zero,
    is_factor,
    is_right,
    loss_like,
    losses,
    mean_of_full_chunks,
    minus_one_in_place_of_probability,
    n_counted,
    one_subtracted_from_exponentials,
    ratio,
    rows_left_out,
    unchanged,
    with_another_picked,
    without_the_label,
    without_the_rest,
)
from labkit.spec import Budget, CaseRun, Hint, KiB, Oracle, Tolerance

ANOTHER_LOGIT = (
    "The loss is log(sum) - z_y with the same z in both: read z_y after the maximum is subtracted and before exp_ "
    "overwrites it."
)
LAST_CHUNK = "Some rows of dx were never written: is the last, shorter chunk left out?"
SLACK_BYTES = 32 * KiB
"""For the vectors of a chunk (maxima, sums, labels) and Python's objects."""


def all_at_once(x: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, chunk_size: int, ignore_index: int):
    """The loss as PyTorch has it, the logits of all tokens in one tensor."""
    return F.cross_entropy(x @ weight.T, labels, ignore_index=ignore_index)


def expected(run: CaseRun[Head]) -> dict[str, Any]:
    return {**run_head(all_at_once, run.case, run.tree, torch.device("cpu")), "repeatable": True}


def tolerances(run: CaseRun[Head]) -> dict[str, Tolerance]:
    """float32 against float32, sums in another order: a part in 10^4 of the largest entry is ample."""
    close = Tolerance(rtol=1e-4, of_largest=1e-4)
    return {"loss": Tolerance(rtol=1e-5, atol=1e-5), "dx": close, "dw": close}


def peak_bytes(run: CaseRun[Head]) -> float:
    """dx + 2 dW + max(4 chunk V, dx) bytes: what the formula has beyond x and W, which are there before.

    In forward a chunk's buffer, and dW beside what is added to it; in backward both gradients and their products.
    """
    case = run.case
    return case.x_bytes + 2 * case.weight_bytes + max(case.chunk_bytes, case.x_bytes) + SLACK_BYTES


def one_chunk_at_a_time(run: CaseRun) -> str | None:
    """What is held twice from one line is the last chunk's buffer beside the new one."""
    held = run.held.get("peak_bytes", ())
    beyond_bytes = run.measured["peak_bytes"] - peak_bytes(run)
    if not 0 < beyond_bytes <= run.case.chunk_bytes or not held:
        return None
    chunk = f": {run.case.chunk_size}×{run.case.n_vocab} float32"
    twice = next((name for name in held if name.startswith("2 × ") and chunk in name), None)
    if twice is None:
        return None
    return f"over budget: two buffers of a chunk are held at once, both made at the same place ({twice})"


def one_dw_at_a_time(run: CaseRun) -> str | None:
    """What is held beyond the budget is a third tensor of dW's shape: the old sum, the product and the new sum."""
    case, held = run.case, run.held.get("peak_bytes", ())
    if not 0 < run.measured["peak_bytes"] - peak_bytes(run) <= case.weight_bytes:
        return None
    like_dw = [name for name in held if f": {case.n_vocab}×{case.width} float32" in name]
    found = sum(int(name.split(" × ")[0]) if re.match(r"\d+ × ", name) else 1 for name in like_dw)
    if found - (case.n_tokens == case.n_vocab) < 3:
        return None
    return "over budget: three tensors of the shape of dW are held at once"


one_dw_at_a_time.hint = (
    "dW is made anew for each chunk: the sum so far, the chunk's product and the new sum are held together. Add in "
    "place: dw.addmm_(...), or dw += ..."
)
one_chunk_at_a_time.hint = (
    "The last chunk's logits are still referred to while the next are made: `del` the name at the end of the turn."
)


CHUNKED_LOSS = Oracle(
    id="05-chunked-loss",
    expect=expected,
    tolerance=tolerances,
    judge=(inputs_untouched, one_chunk_at_a_time, one_dw_at_a_time),
    call=lambda run: as_call(
        "chunked_loss",
        run.tree["x"],
        run.tree["weight"],
        run.tree["labels"],
        chunk_size=run.case.chunk_size,
        ignore_index=run.case.ignore_index,
    ),
    places={
        "dx": "gradient with respect to x",
        "dw": "gradient with respect to weight",
        "repeatable": "answer to whether a second backward pass gives the same gradients",
    },
    axis="sizes of the last chunk, values of ignore_index, and gradients from above",
    budgets=(
        Budget(
            "peak_bytes",
            peak_bytes,
            "More than dx + 2 dW + max(4 * chunk * V, dx) bytes + 32 KiB is held at once. A chunk's logits are not "
            "needed once its part of dx and dW is added: work out the gradient in the same loop, and write the "
            "probabilities over the logits.",
        ),
    ),
    errors={
        "index -100 is out of bounds": (
            "An ignored label is no column of the logits, so it cannot be an index: put 0 in its place, and set that "
            "token's loss and its row of the gradient to zero."
        ),
    },
    diagnose=(
        Hint(
            lambda run: run.got["dx"] is None or run.got["dw"] is None,
            "There is no gradient: the loss came back without a graph. Let an autograd Function work out dx and dW in "
            "forward, and hand them over in backward.",
        ),
        Hint(
            lambda run: not run.got["repeatable"],
            "The first backward pass changed what the graph keeps, so a second one (retain_graph=True) starts from "
            "gradients that are scaled already: return dx * grad_output, a new tensor, not dx.mul_(grad_output).",
        ),
        Hint(
            lambda run: run.got["loss"].isnan() and run.case.silent_end,
            "A chunk whose labels are all ignored has no mean: 0 / 0 is NaN. Add sums, and divide once by the number "
            "of labels that count.",
        ),
        Hint(
            lambda run: run.case.loud > 1 and not (run.got["loss"].isfinite() and run.got["dx"].isfinite().all()),
            "Logits of a few hundred overflow in exp, and with the maximum of another token subtracted they may all "
            "become 0. Subtract from each row its own maximum first.",
        ),
        Hint(
            loss_like(lambda run: F.cross_entropy(run.tree["x"] @ run.tree["weight"].T, run.tree["labels"])),
            "Labels that should be ignored were counted: ignore_index is an argument, and need not be -100 or "
            "negative.",
        ),
        Hint(
            loss_like(ignored_as_zero),
            "The sum has the losses of tokens whose label is ignored: multiply them by 0 before adding up.",
        ),
        *(Hint(loss_like(with_another_picked(pick)), ANOTHER_LOGIT) for pick in (unchanged, torch.exp)),
        *(
            Hint(
                loss_like(without_the_label(lowered)),
                "The label has no part in this loss: a token's is log(sum) - z_y, with z_y the logit of its label.",
            )
            for lowered in (True, False)
        ),
        Hint(
            averages_means,
            "That is the mean of the chunks' means, which gives tokens in chunks with few labels more weight. Add "
            "sums, and divide once by the number of labels that count.",
        ),
        Hint(
            loss_like(lambda run: losses(run).mean()),
            "The sum was divided by the number of all tokens: only those count whose label is not ignore_index.",
        ),
        Hint(
            loss_like(mean_of_full_chunks),
            "Every chunk was divided by its own length, and the last one is shorter. Add sums, and divide once by the "
            "number of labels that count.",
        ),
        Hint(
            loss_like(without_the_rest),
            LAST_CHUNK,
        ),
        Hint(
            loss_like(lambda run: losses(run).sum()),
            "That is the sum: divide by the number of labels that count.",
        ),
        Hint(
            lambda run: any(is_factor(ratio(name, run), 1 / run.case.upstream) for name in ("dx", "dw")),
            "backward ignores the incoming gradient: multiply both gradients by grad_output.",
        ),
        Hint(
            lambda run: is_factor(ratio("dx", run), n_counted(run)),
            "The gradients belong to the sum of the losses: divide them by the number of labels that count, too.",
        ),
        Hint(
            lambda run: bool(
                run.got["dx"][run.tree["labels"] == run.case.ignore_index].abs().max()
                > 1e-3 * run.got["dx"].abs().max()
            ),
            "Tokens whose label is ignored got a gradient: their rows of the chunk must be zero.",
        ),
        Hint(
            dx_like(lambda mean, own, n: mean / n),
            "The gradient with respect to the logits is p - [v = y]: the 1 at the label was not subtracted.",
        ),
        Hint(
            dx_like(lambda mean, own, n: (mean + own) / n),
            "The gradient with respect to the logits is p - [v = y]: the 1 at the label was added.",
        ),
        Hint(
            dx_like(lambda mean, own, n: mean / n - own),
            "The 1 at the label was subtracted after the division by the number of tokens: divide the difference.",
        ),
        Hint(
            dx_from(one_subtracted_from_exponentials),
            "The 1 at the label was subtracted from the exponentials. It belongs to the probabilities: divide by the "
            "row's sum first.",
        ),
        Hint(
            dx_from(minus_one_in_place_of_probability),
            "At the label -1 stands in place of p - 1. Subtract the 1 from what is there: scatter_add_, not scatter_.",
        ),
        Hint(
            each_row_scaled,
            "The gradients were divided by a number that differs from chunk to chunk. Divide by the number of labels "
            "that count in all of them.",
        ),
        Hint(
            lambda run: not is_right("dx", run) and ratio("dx", run) != 0,
            "dx is right but for a factor: divide once by the number of labels that count, and multiply once by the "
            "incoming gradient.",
        ),
        Hint(
            rows_left_out,
            LAST_CHUNK,
        ),
        Hint(
            lambda run: not is_right("dx", run),
            "The rows of dx are not (p - [v = y]) @ W / n: were the logits really turned into probabilities? Check "
            "that each step writes into the buffer that the next one reads.",
        ),
        Hint(
            lambda run: is_right("dx", run) and not is_right("dw", run),
            "dx is right and dW is not: it is a sum over all chunks, each chunk adds logits.T @ x of its own.",
        ),
    ),
)
