"""Lab 17: what is true of an embedding that is cut by rows: PyTorch's own of the whole table, and one all-reduce."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab17.vocab_embedding import Table
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance

CLOSE = Tolerance(rtol=1e-5, atol=1e-6)


@once
def by_torch(run: CaseRun[Table]) -> tuple[Tensor, list[Tensor]]:
    """What is looked up, and the gradient of each rank's rows."""
    table = torch.cat([one["weight"] for one in run.tree["ranks"]]).requires_grad_()
    out = F.embedding(run.tree["tokens"], table)
    (grad,) = torch.autograd.grad(out, table, run.tree["dout"])
    return out.detach(), [part.clone() for part in grad.chunk(run.case.n_ranks)]


def expected(run: CaseRun[Table]) -> dict:
    out, grads = by_torch(run)
    return {"ranks": [{"out": out, "grad": grad} for grad in grads]}


def most_bytes(run: CaseRun[Table]) -> float:
    """A ring's all-reduce of what is looked up; its chunks may be one element longer than others."""
    n, out = run.case.n_ranks, 4 * run.case.width * math.prod(run.case.tokens)
    return max(2 * (n - 1) / n * out + 8 * n, 1)


def own(run: CaseRun[Table], rank: int, foreign: str) -> Tensor:
    """What a rank knows. foreign: what it has for other ranks' tokens: "0", the "nearest" of its rows, its "first" one,
    or the row that its number points at, counted from the "end" where it is negative."""
    rows = run.case.rows
    at = run.tree["tokens"] - rank * rows
    here = (at >= 0) & (at < rows)
    points_at = {"nearest": at.clamp(0, rows - 1), "first": at * here}.get(foreign, at % rows)
    found = run.tree["ranks"][rank]["weight"][points_at]
    return torch.where(here[..., None], found, 0.0) if foreign == "0" else found


def outs_are(make: Callable[[CaseRun[Table], int], Tensor]) -> Callable[[CaseRun[Table]], Any]:
    """A hint's condition: each rank has what a mistake makes. CANNOT_TELL where that is the right thing."""

    def when(run: CaseRun[Table]) -> Any:
        wrong = [make(run, rank) for rank in range(run.case.n_ranks)]
        if all(compare(by_torch(run)[0], one, CLOSE) is None for one in wrong):
            return CANNOT_TELL
        return all(compare(one, got["out"], CLOSE) is None for one, got in zip(wrong, run.got["ranks"], strict=True))

    return when


def with_the_next_rank_s_first(run: CaseRun[Table]) -> Tensor:
    """Summed over ranks that take one row too many for theirs, and look it up as their last one."""
    found, rows = [], run.case.rows
    for rank, one in enumerate(run.tree["ranks"]):
        at = run.tree["tokens"] - rank * rows
        row = one["weight"][at.clamp(0, rows - 1)]
        found.append(torch.where(((at >= 0) & (at <= rows))[..., None], row, 0.0))
    return torch.stack(found).sum(0)


def total(run: CaseRun[Table], foreign: str) -> Tensor:
    return torch.stack([own(run, rank, foreign) for rank in range(run.case.n_ranks)]).sum(0)


def out_is_right(run: CaseRun[Table]) -> bool:
    return all(compare(by_torch(run)[0], one["out"], CLOSE) is None for one in run.got["ranks"])


def grads_are(factor: Callable[[Table], float]) -> Callable[[CaseRun[Table]], Any]:
    """A hint's condition: the values are right, and all gradients are so many times the right ones."""

    def when(run: CaseRun[Table]) -> Any:
        if factor(run.case) == 1:
            return CANNOT_TELL
        pairs = zip(by_torch(run)[1], run.got["ranks"], strict=True)
        return out_is_right(run) and all(compare(factor(run.case) * a, b["grad"], CLOSE) is None for a, b in pairs)

    return when


def foreign_rows_learn(run: CaseRun[Table]) -> bool:
    """The values are right, and rows have a gradient that no token points at."""
    pairs = zip(by_torch(run)[1], run.got["ranks"], strict=True)
    return out_is_right(run) and any(bool((b["grad"][(a == 0).all(1)] != 0).any()) for a, b in pairs)


def in_words(run: Observation) -> str:
    case = run.case
    ranks = f"{case.n_ranks} rank{'s' * (case.n_ranks > 1)}"
    return (
        f"vocab_parallel_embedding(comm, weight, tokens): {ranks}, each with weight of shape "
        f"{(case.rows, case.width)}, tokens of shape {case.tokens}" + ", none of them of the last rank" * case.idle
    )


OFFSET = (
    "A token is a number in the whole table. Subtract the number of this rank's first row, and look it up only where "
    "it is one of this rank's rows."
)

VOCAB_EMBEDDING = Oracle(
    id="17-vocab-embedding",
    expect=expected,
    tolerance=CLOSE,
    judge=(inputs_untouched,),
    call=in_words,
    axis="numbers of ranks and rows, shapes of tokens, and ranks without a token",
    places={"out": "result", "grad": "gradient of this rank's rows"},
    errors={"index out of range in self": OFFSET, "out of bounds": OFFSET},
    budgets=(
        Budget(
            "collectives",
            1,
            "One all-reduce in the forward pass is enough. The backward pass needs none: every rank has the whole "
            "gradient of the result, and its own rows.",
        ),
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes: the table stays where it is. Only the result is all-reduced.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: any(one["grad"] is None for one in run.got["ranks"]) and out_is_right(run),
            "The rows have no gradient: autograd does not see what a collective writes. Sum in the forward of a "
            "torch.autograd.Function whose backward hands the gradient on.",
        ),
        Hint(
            outs_are(lambda run, rank: own(run, rank, "0")),
            "Each rank has only what it knows. The ranks' results have to be added up: one all-reduce.",
        ),
        Hint(
            outs_are(lambda run, rank: total(run, "nearest")),
            "Numbers of other ranks' tokens were clamped to this rank's rows, and what was looked up there was added "
            "up as well. Set it to 0 first.",
        ),
        Hint(
            outs_are(lambda run, rank: total(run, "first")),
            "Numbers of other ranks' tokens were set to 0, and so each rank looked up its row 0 for them, which was "
            "added up as well. Set the result to 0, not the number.",
        ),
        Hint(
            outs_are(lambda run, rank: total(run, "end")),
            "Every rank looked something up for every token: the row at the remainder of its number, or a row counted "
            "from the end. Set to 0 what belongs to other ranks.",
        ),
        Hint(
            outs_are(lambda run, rank: total(run, "0") / run.case.n_ranks),
            "The result was averaged. All ranks but one have put in 0, so the sum is the row.",
        ),
        Hint(
            outs_are(lambda run, rank: torch.stack([own(run, one, "0") for one in range(run.case.n_ranks)]).amax(0)),
            "Where the row has a negative number, the result has 0: the largest over the ranks was taken. All ranks "
            "but one put in 0, so add up (op='sum').",
        ),
        Hint(
            outs_are(lambda run, rank: with_the_next_rank_s_first(run)),
            "A rank's rows are 0 to len(weight) - 1, after its first row was subtracted. len(weight) itself is the "
            "first row of the next rank.",
        ),
        Hint(
            grads_are(lambda case: case.n_ranks),
            "The result is right, and the gradient is too large by the number of ranks. Every rank has the whole "
            "gradient of the result already, so nothing is summed on the way back.",
        ),
        Hint(
            foreign_rows_learn,
            "The result is right. In the backward pass, rows get a gradient from tokens that belong to other ranks.",
        ),
    ),
)
