"""Lab 16: what is true of clipping over shards: PyTorch's own norm of everything, one number through the network."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from labkit.compare import inputs_untouched
from labkit.exercises.lab16.clip import Parts
from labkit.oracles.calls import as_call
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle

NORM_RTOL = 1e-4
"""float32 sums in another order; a norm that was rounded to bfloat16 on the way is 1e-3 off or more."""


def norm_of(tensors: list[Tensor]) -> float:
    return float(get_total_norm([tensor.float() for tensor in tensors])) if tensors else 0.0


@once
def own_norms(run: CaseRun[Parts]) -> list[float]:
    """The norm of each rank's shards."""
    return [norm_of(one["shards"]) for one in run.tree["ranks"]]


@once
def replicated_norm(run: CaseRun[Parts]) -> float:
    return norm_of(run.tree["replicated"])


@once
def whole_norm(run: CaseRun[Parts]) -> float:
    return norm_of([*(grad for one in run.tree["ranks"] for grad in one["shards"]), *run.tree["replicated"]])


def norms_are_right(run: CaseRun[Parts]) -> str | None:
    """A property: every rank returned the norm of one process that holds everything."""
    for rank, one in enumerate(run.got["ranks"]):
        if not math.isclose(one["norm"], whole_norm(run), rel_tol=NORM_RTOL):
            return f"rank {rank} returned the norm {one['norm']:.6g}, and one process finds {whole_norm(run):.6g}"
    return None


def pairs(run: CaseRun[Parts]) -> list[tuple[int, str, Tensor, Tensor]]:
    """(rank, its name, gradient before, gradient after) of every gradient."""
    found = []
    for rank, (given, got) in enumerate(zip(run.tree["ranks"], run.got["ranks"], strict=True)):
        shards = [grad for grad in given["shards"] if len(grad)]
        found += [(rank, f"shard {k}", a, b) for k, (a, b) in enumerate(zip(shards, got["shards"], strict=True))]
        replicated = zip(run.tree["replicated"], got["replicated"], strict=True)
        found += [(rank, f"replicated gradient {k}", a, b) for k, (a, b) in enumerate(replicated)]
    return found


def gradients_are_clipped(run: CaseRun[Parts]) -> str | None:
    """A property: all gradients are multiplied by the one factor, in place."""
    factor = min(1.0, run.case.max_norm / whole_norm(run))
    for rank, name, before, after in pairs(run):
        if after is None or after.shape != before.shape or after.dtype != before.dtype:
            return f"{name} of rank {rank} has lost its shape or dtype"
        rtol = 2**-6 if before.dtype == torch.bfloat16 else 1e-4
        if not torch.allclose(after.float(), before.float() * factor, rtol=rtol, atol=0):
            return f"{name} of rank {rank} was multiplied by {_factor(before, after):.4g}, and not by {factor:.4g}"
    return None


def changed_in_place(run: CaseRun[Parts]) -> str | None:
    """A property: who held a gradient before, such as a bucket, sees it clipped."""
    for rank, one in enumerate(run.got["ranks"]):
        if not one["in_place"]:
            return f"a parameter of rank {rank} has another gradient than before, and its own was not multiplied"
    return None


changed_in_place.hint = (
    "p.grad = p.grad * factor makes a second gradient, and whoever holds the first one, such as a bucket of DDP, sees "
    "nothing of it. Multiply in place: p.grad.mul_(factor), or p.grad *= factor."
)


def _factor(before: Tensor, after: Tensor) -> float:
    return float(after.double().sum() / before.double().sum())


def factors(run: CaseRun[Parts]) -> list[float]:
    """By what each gradient was multiplied."""
    return [_factor(before, after) for _, _, before, after in pairs(run)]


def norm_is(of_rank: Callable[[CaseRun[Parts], int], float], rtol: float = NORM_RTOL) -> Callable[[CaseRun], Any]:
    """A hint's condition: each rank's norm is what a mistake makes of it. CANNOT_TELL where that is the right one."""

    def when(run: CaseRun[Parts]) -> Any:
        wrong = [of_rank(run, rank) for rank in range(run.case.n_ranks)]
        if all(math.isclose(one, whole_norm(run), rel_tol=rtol) for one in wrong):
            return CANNOT_TELL
        got = [one["norm"] for one in run.got["ranks"]]
        return all(math.isclose(a, b, rel_tol=rtol) for a, b in zip(got, wrong, strict=True))

    return when


def squares(norms: list[float]) -> float:
    return sum(norm**2 for norm in norms)


def scaled_up(run: CaseRun[Parts]) -> Any:
    """Where the norm is small enough, the gradients became larger."""
    if whole_norm(run) >= run.case.max_norm:
        return CANNOT_TELL
    return min(factors(run)) > 1.001


def some_untouched(name: str) -> Callable[[CaseRun[Parts]], Any]:
    """The norm is right, and gradients of this kind are as before where they should have been clipped."""

    def when(run: CaseRun[Parts]) -> Any:
        if norms_are_right(run) or whole_norm(run) <= run.case.max_norm:
            return False
        these = [torch.equal(a, b) for _, one, a, b in pairs(run) if one.startswith(name)]
        return all(these) if these else CANNOT_TELL

    return when


def factor_is(of_rank: Callable[[CaseRun[Parts], int], float]) -> Callable[[CaseRun[Parts]], Any]:
    """The norm is right, and each rank's gradients were multiplied by what a mistake makes of the factor."""

    def when(run: CaseRun[Parts]) -> Any:
        wanted = [min(1.0, of_rank(run, rank)) for rank, *_ in pairs(run)]
        if norms_are_right(run) or max(wanted) == 1.0:
            return False
        return all(math.isclose(a, b, rel_tol=0.01) for a, b in zip(factors(run), wanted, strict=True))

    return when


def different_factors(run: CaseRun[Parts]) -> Any:
    """A factor for each rank or tensor; CANNOT_TELL where the norms of the ranks' shards are about the same."""
    if max(own_norms(run)) < 1.05 * min(own_norms(run)):
        return CANNOT_TELL
    return norms_are_right(run) is None and max(factors(run)) > 1.02 * min(factors(run))


def norms_of_all(run: CaseRun[Parts]) -> float:
    """What norms come to that are added up tensor by tensor."""
    tensors = [*(grad for one in run.tree["ranks"] for grad in one["shards"]), *run.tree["replicated"]]
    return sum(map(norm_of, ([tensor] for tensor in tensors)))


def rounded_in_bf16(run: CaseRun[Parts]) -> bool:
    """bfloat16 gradients, and a norm that is nearly right."""
    close = all(math.isclose(one["norm"], whole_norm(run), rel_tol=0.02) for one in run.got["ranks"])
    return run.case.dtype == "bfloat16" and norms_are_right(run) is not None and close


def in_words(run: Observation) -> str:
    case = run.case
    call = as_call("clip_sharded", max_norm=case.max_norm).replace("(", "(comm, sharded, replicated, ")
    values = "" if case.every is None else f", each element {case.every:g}"
    return (
        f"{call}, {case.dtype}, shards of {list(map(list, case.shards))} elements by rank, replicated "
        f"{list(case.replicated)}{values}"
    )


CLIP = Oracle(
    id="16-clip",
    call=in_words,
    judge=(inputs_untouched, norms_are_right, gradients_are_clipped, changed_in_place),
    axis="numbers of ranks, uneven and empty shards, and 16-bit gradients",
    errors={
        "'NoneType' object has no attribute": "A shard without elements has no gradient: its .grad is None. It adds "
        "nothing to the norm, but its rank takes part in the collective.",
    },
    budgets=(
        Budget(
            "collectives",
            1,
            "Too many calls. Add up the squares of all gradients at home; one all-reduce of one number is enough.",
        ),
        Budget(
            "bytes_sent",
            lambda run: max(8 * (run.case.n_ranks - 1), 16),
            "Too many bytes: one number of each rank is enough, the sum of its squares. The gradients stay at home.",
        ),
    ),
    diagnose=(
        Hint(
            norm_is(lambda run, rank: math.hypot(own_norms(run)[rank], replicated_norm(run))),
            "Each rank took the norm of what it holds, and clipped by a factor of its own. Add up the squares of the "
            "shards over the ranks.",
        ),
        Hint(
            norm_is(lambda run, rank: own_norms(run)[rank]),
            "That is the norm of each rank's own shard. The squares of all shards and of the replicated gradients "
            "belong into it.",
        ),
        Hint(
            norm_is(
                lambda run, rank: math.sqrt(squares(own_norms(run)) + run.case.n_ranks * replicated_norm(run) ** 2)
            ),
            "The replicated gradients were counted once for every rank. Add their squares after the all-reduce, or on "
            "one rank alone.",
        ),
        Hint(
            norm_is(lambda run, rank: math.sqrt(squares(own_norms(run)))),
            "The replicated gradients are missing in the norm.",
        ),
        Hint(
            norm_is(
                lambda run, rank: math.sqrt(squares(own_norms(run)) / run.case.n_ranks + replicated_norm(run) ** 2)
            ),
            "The squares were averaged over the ranks. The shards are different parts: add them up.",
        ),
        Hint(
            norm_is(lambda run, rank: math.hypot(max(own_norms(run)), replicated_norm(run))),
            "Only the largest of the shards' norms was counted: add up the squares of all.",
        ),
        Hint(
            norm_is(lambda run, rank: sum(own_norms(run)) + replicated_norm(run)),
            "Norms do not add up, their squares do: sum the squares over the ranks, then take the root.",
        ),
        Hint(
            norm_is(lambda run, rank: math.hypot(sum(own_norms(run)), replicated_norm(run))),
            "Norms do not add up, their squares do: sum the squares over the ranks, then take the root.",
        ),
        Hint(
            norm_is(lambda run, rank: norms_of_all(run)),
            "The norms of the tensors were added up. Norms do not add up, their squares do: sum the squares of all "
            "elements, then take the root.",
        ),
        Hint(
            norm_is(
                lambda run, rank: math.sqrt(squares(own_norms(run)) + replicated_norm(run) ** 2 / run.case.n_ranks)
            ),
            "The squares of the replicated gradients were divided by the number of ranks and added after the "
            "all-reduce. They count once: divide them and add them before it, or add them whole after it.",
        ),
        Hint(norm_is(lambda run, rank: whole_norm(run) ** 2), "That is the square of the norm: take the root."),
        Hint(
            norm_is(lambda run, rank: min(whole_norm(run), run.case.max_norm)),
            "That is the norm after clipping. Return the one from before.",
        ),
        Hint(
            rounded_in_bf16,
            "The norm is a little off where the gradients are in bfloat16: their squares were rounded to 8 bits before "
            "they were added up. Convert to float32 first.",
        ),
        Hint(
            some_untouched(""),
            "The norm is right, and the gradients are as before: multiply them in place, by max_norm / norm.",
        ),
        Hint(
            some_untouched("replicated"),
            "The replicated gradients were not clipped: all gradients are multiplied by the same factor.",
        ),
        Hint(
            some_untouched("shard"),
            "The shards were not clipped: all gradients are multiplied by the same factor.",
        ),
        Hint(
            factor_is(lambda run, rank: (run.case.max_norm / whole_norm(run)) ** 2),
            "The norm is right, and the factor is the square of max_norm / norm.",
        ),
        Hint(
            factor_is(lambda run, rank: run.case.max_norm / whole_norm(run) / run.case.n_ranks),
            "max_norm was divided by the number of ranks. It is the limit of the whole gradient's norm, of which each "
            "rank holds a part: the factor is max_norm / norm on all of them.",
        ),
        Hint(
            scaled_up,
            "A gradient whose norm is below max_norm was made larger. The factor is 1 at most.",
        ),
        Hint(
            different_factors,
            "Gradients were multiplied by different factors: there is one norm and one factor, for all of them.",
        ),
    ),
)
