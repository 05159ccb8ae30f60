"""Lab 17: a cross-entropy over cut logits as each rank would compute it in float32, right or with one mistake.

Nothing here says how close a right result has to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab17.vocab_loss import Logits, draw_logits, draw_targets, some
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Tolerance

ALIKE = Tolerance(rtol=3e-4, atol=3e-5, check_dtype=False)
"""For what a mistake makes of float32 numbers. bfloat16 rounds to 8 bits."""
ALIKE_BF16 = Tolerance(rtol=2e-2, atol=2e-3, check_dtype=False)

Sums = Callable[[list[Tensor]], Tensor]
"""The ranks' parts of a sum -> the sum as a rank has it."""


@dataclass(frozen=True)
class Plan:
    """One way to compute the loss; as it is, the right one.

    top: what is subtracted: the maximum of "all" columns, or of the rank's "own". adds_top: whether log Z gets it back
    (for the z-loss), and likewise subtracts_top for the target's logit. sums: whose sums of exponentials count.
    picks: how a target on another rank counts: "0", or as the "nearest" column of each rank, or not even on its way
    to the others ("own"). mean_of: "counted" tokens, "all", "1" for the sum, or "ranks" for a count of all ranks.
    The rest is about the gradient: factors on parts of it, whether 1 is subtracted on every rank, and whether each rank
    has the sum over all ranks, which are of the same shape.
    """

    top: str = "all"
    z_adds_top: bool = True
    subtracts_top: bool = True
    sums: str = "all"
    picks: str = "0"
    mean_of: str = "counted"
    counts_ignored: bool = False
    z_of: str = "counted"
    z_factor: float = 1.0
    z_squared: bool = True
    grad_factor: float | str = 1.0
    sum_grad_factor: float | str = 1.0
    pick_grad_factor: float | str = 1.0
    pick_grad_everywhere: bool = False
    z_grad_factor: float = 1.0
    uses_dloss: bool = True
    sums_grads: bool = False


def share(value: Tensor, factor: float) -> Tensor:
    """The value itself, its gradient times a factor."""
    return value if factor == 1 else value.detach() + (value - value.detach()) * factor


@once
def parts(run: CaseRun[Logits]) -> list[Tensor]:
    """Each rank's logits."""
    return [draw_logits(run.case, one["seed"], rank).float() for rank, one in enumerate(run.tree["ranks"])]


@once
def targets(run: CaseRun[Logits]) -> Tensor:
    return draw_targets(run.case, run.tree["seed"])


@once
def played(run: CaseRun[Logits], plan: Plan) -> list[dict[str, Tensor]]:
    """Of each rank its loss and its gradient."""
    case = run.case
    found = []
    for rank in range(case.n_ranks):
        own = parts(run)[rank].clone().requires_grad_()
        columns = [own if other == rank else part for other, part in enumerate(parts(run))]
        loss = _loss(run, plan, columns, rank) * (case.dloss if plan.uses_dloss else 1.0)
        (grad,) = torch.autograd.grad(loss, own)
        shown = loss.detach() / (case.dloss if plan.uses_dloss else 1.0)
        found.append({"loss": shown, "grad": some(grad * _number(plan.grad_factor, case), case)})
    if plan.sums_grads:
        total = torch.stack([one["grad"] for one in found]).sum(0)
        return [one | {"grad": total} for one in found]
    return found


def _number(factor: float | str, case: Logits) -> float:
    n_counted = case.n_tokens - case.ignored
    return {"ranks": case.n_ranks, "count": n_counted, "1/count": 1 / n_counted}.get(factor, factor)


def _loss(run: CaseRun[Logits], plan: Plan, columns: list[Tensor], rank: int) -> Tensor:
    case, n = run.case, run.case.n_ranks
    own_tops = [part.detach().amax(1) for part in columns]
    tops = own_tops if plan.top == "own" else [torch.stack(own_tops).amax(0)] * n
    exps = [(part - top[:, None]).exp().sum(1) for part, top in zip(columns, tops)]
    total = exps[rank] if plan.sums == "own" else torch.stack(exps).sum(0)
    log_sum = share(total.log(), _number(plan.sum_grad_factor, case))
    picks = [_picked(run, plan, part, top, other) for other, (part, top) in enumerate(zip(columns, tops))]
    picked = picks[rank] if plan.picks == "own" else torch.stack(picks).sum(0)
    picked = share(picked, _number(plan.pick_grad_factor, case))
    added = tops[rank] if not plan.subtracts_top and plan.top == "own" else torch.zeros_like(log_sum)
    losses = log_sum + added - picked
    log_z = log_sum + tops[rank] if plan.z_adds_top else log_sum
    counted = targets(run) != case.ignore_index
    takes_part = torch.ones_like(counted) if plan.counts_ignored else counted
    n_counted = {"all": case.n_tokens, "1": 1, "ranks": n * int(counted.sum())}.get(plan.mean_of, int(counted.sum()))
    z_losses = plan.z_factor * case.z_weight * share(log_z**2 if plan.z_squared else log_z, plan.z_grad_factor)
    z_part = torch.ones_like(counted) if plan.z_of == "all" else takes_part
    n_z = case.n_tokens if plan.z_of == "all" else n_counted
    return (losses * takes_part).sum() / n_counted + (z_losses * z_part).sum() / n_z


def _picked(run: CaseRun[Logits], plan: Plan, part: Tensor, top: Tensor, rank: int) -> Tensor:
    """What this rank puts into the sum of the targets' logits."""
    at = targets(run) - rank * run.case.columns
    is_here = (at >= 0) & (at < run.case.columns)
    near = part.gather(1, at.clamp(0, run.case.columns - 1)[:, None])[:, 0]
    shifted = near - top if plan.subtracts_top else near
    if plan.picks == "nearest":
        return shifted
    return torch.where(is_here, shifted, shifted - shifted.detach() if plan.pick_grad_everywhere else 0.0)


def alike(run: CaseRun[Logits], plan: Plan, key: str) -> bool:
    """Whether this plan makes what came back under a key, on every rank."""
    tolerance = _tolerance(run)
    wanted, got = ([one[key] for one in ranks] for ranks in (played(run, plan), run.got["ranks"]))
    return all(compare(a.float(), b.float(), tolerance) is None for a, b in zip(wanted, got, strict=True))


def tells(run: CaseRun[Logits], plan: Plan, keys: Iterable[str]) -> bool:
    """Whether the plan makes anything else than the right one under these keys."""
    wrong, right = ([[one[key] for key in keys] for one in played(run, each)] for each in (plan, Plan()))
    return compare(wrong, right, _tolerance(run)) is not None


def _tolerance(run: CaseRun[Logits]) -> Tolerance:
    return ALIKE_BF16 if run.case.dtype == "bfloat16" else ALIKE


def went_as(
    *plans: Plan, keys: Iterable[str] = ("loss", "grad"), with_padding: bool = True
) -> Callable[[CaseRun[Logits]], object]:
    """A hint's condition: every rank has what one of these plans makes. CANNOT_TELL where that is the right thing.

    with_padding: whether the plans say what becomes of columns of -inf; those are left out otherwise.
    """

    def when(run: CaseRun[Logits]) -> object:
        if run.case.padded and not with_padding:
            return CANNOT_TELL
        told = [plan for plan in plans if tells(run, plan, keys)]
        if not told:
            return CANNOT_TELL
        return any(all(alike(run, plan, key) for key in keys) for plan in told)

    return when
