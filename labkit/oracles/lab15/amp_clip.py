"""Lab 15: what is true of a step with loss scaling and clipping: all ranks do what one process would do."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab15.amp_clip import LEARNING_RATE, MOMENTUM, ClippedSteps, finite
from labkit.spec import Budget, CaseRun, Hint, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)
"""float32 sums over rows and ranks in another order."""
CALLS_A_STEP = 2
"""Beside one for each shared parameter."""


def one_process(run: CaseRun[ClippedSteps]) -> dict[str, Any]:
    """One process that holds the shared parameters and the tables of all ranks; PyTorch clips and steps."""
    case, tree = run.case, run.tree
    shared = [value.clone().requires_grad_() for value in tree["shared"]]
    own = [part["own"].clone().requires_grad_() for part in tree["ranks"]]
    optimizer = torch.optim.SGD([*shared, *own], lr=LEARNING_RATE, momentum=MOMENTUM)
    norms, scales, after, scale = [], [], [], case.scale
    for step in range(case.n_steps):
        for parameter, part in zip(own, tree["ranks"], strict=True):
            parameter.grad = part["own_grads"][step].clone()
        for number, parameter in enumerate(shared):
            parameter.grad = mean_of(tree, step, number)
        norm = clip_grad_norm_([*shared, *own], case.max_norm)
        if norm.isfinite():
            optimizer.step()
        else:
            scale /= 2
        norms.append(finite(norm))
        scales.append(scale)
        after.append(([p.detach().clone() for p in shared], [p.detach().clone() for p in own]))
    return {
        "ranks": [
            {"scales": scales, "norms": norms, "after": [{"shared": s, "own": o[rank]} for s, o in after]}
            for rank in range(case.n_ranks)
        ]
    }


def mean_of(tree: dict, step: int, number: int) -> Tensor:
    """The averaged gradient of a shared parameter."""
    return torch.stack([part["shared_grads"][step][number] for part in tree["ranks"]]).mean(0)


def mean_of_tables(tree: dict) -> float:
    """The squares that are added up where the gradients of the tables were averaged over the ranks; NaN if they differ
    in size."""
    grads = [part["own_grads"][0] for part in tree["ranks"]]
    if len({grad.shape for grad in grads}) > 1:
        return math.nan
    return len(grads) * squares([torch.stack(grads).mean(0)])


def squares(tensors: list[Tensor]) -> float:
    return sum(float(tensor.square().sum()) for tensor in tensors)


def first_norms(run: CaseRun[ClippedSteps]) -> dict[str, list[float]]:
    """What each rank would call the norm of its first step, by mistake; and the right one."""
    case = run.case
    parts = run.tree["ranks"]
    own = [squares([part["own_grads"][0]]) for part in parts]
    mean = [mean_of(run.tree, 0, number) for number in range(len(case.n_shared))]
    local = [squares(part["shared_grads"][0]) for part in parts]
    n, average = case.n_ranks, squares(mean)
    every = [1.0] * n
    return {
        "right": [math.sqrt(average + sum(own)) for _ in every],
        "alone": [math.sqrt(average + one) for one in own],
        "n times": [math.sqrt(n * average + sum(own)) for _ in every],
        "shared only": [math.sqrt(average) for _ in every],
        "before the average": [math.sqrt(sum(local) + sum(own)) for _ in every],
        "of its own version": [math.sqrt(one + sum(own)) for one in local],
        "own averaged": [math.sqrt(average + sum(own) / n) for _ in every],
        "own gradients averaged": [math.sqrt(average + mean_of_tables(run.tree)) for _ in every],
        "norms added": [sum(math.sqrt(average + one) for one in own) for _ in every],
        "norms added, shared once": [math.sqrt(average) + sum(map(math.sqrt, own)) for _ in every],
        "norms of tables added": [math.sqrt(average + sum(map(math.sqrt, own)) ** 2) for _ in every],
        "of sums": [math.sqrt(n**2 * average + sum(own)) for _ in every],
        "squared": [average + sum(own) for _ in every],
        "own scaled": [math.sqrt(average + case.scale**2 * sum(own)) for _ in every],
        "shared scaled": [math.sqrt(case.scale**2 * average + sum(own)) for _ in every],
        "clipped": [min(math.sqrt(average + sum(own)), case.max_norm) for _ in every],
    }


def norm_is(mistake: str) -> Any:
    """A diagnosis: on every rank the first step's norm is the one that this mistake gives, and a wrong one."""

    def when(run: CaseRun[ClippedSteps]) -> bool:
        norms = first_norms(run)
        pairs = list(zip(norms[mistake], norms["right"], [one["norms"][0] for one in run.got["ranks"]], strict=True))
        return all(math.isclose(wrong, one, rel_tol=1e-4) for wrong, _, one in pairs) and any(
            not math.isclose(right, one, rel_tol=1e-3) for _, right, one in pairs
        )

    return when


def times_the_scale(run: CaseRun[ClippedSteps]) -> bool:
    norms = first_norms(run)["right"]
    return all(
        math.isclose(right * run.case.scale, one["norms"][0], rel_tol=1e-4)
        for right, one in zip(norms, run.got["ranks"])
    )


def same_scales(run: CaseRun[ClippedSteps]) -> bool:
    return all(one["scales"] == run.got["ranks"][0]["scales"] for one in run.got["ranks"])


def spoiled_steps(case: ClippedSteps) -> set[int]:
    return {step for step, *_ in case.spoiled}


def moved(run: CaseRun[ClippedSteps], rank: int, step: int) -> bool:
    """Whether the rank's parameters changed in this step."""
    after = run.got["ranks"][rank]["after"]
    before = {"shared": run.tree["shared"], "own": run.tree["ranks"][rank]["own"]} if step == 0 else after[step - 1]
    return compare(before, after[step]) is not None


def stepped_when_spoiled(run: CaseRun[ClippedSteps]) -> list[list[bool]]:
    """For each spoiled step: who moved."""
    return [[moved(run, rank, step) for rank in range(run.case.n_ranks)] for step in sorted(spoiled_steps(run.case))]


def right_norms(run: CaseRun[ClippedSteps]) -> bool:
    right = run.expected["ranks"]
    return all(compare(a["norms"], b["norms"], CLOSE) is None for a, b in zip(right, run.got["ranks"], strict=True))


def most_bytes(run: CaseRun[ClippedSteps]) -> float:
    """Rings: each shared gradient in n chunks, and two numbers of up to 8 bytes that make a call each."""
    n = run.case.n_ranks
    chunks_bytes = sum(4 * math.ceil(size / n) for size in run.case.n_shared) + 8 * CALLS_A_STEP
    return run.case.n_steps * max(2 * (n - 1) * chunks_bytes, 1)


def replicas(run: CaseRun) -> str | None:
    """What all ranks share is the same to the last bit."""
    first, *others = ([step["shared"] for step in got["after"]] for got in run.got["ranks"])
    for rank, shared in enumerate(others, 1):
        if compare(first, shared) is not None:
            return f"the shared parameters of rank 0 and rank {rank} are close, but not the same bits"
    return None


AMP_CLIP = Oracle(
    id="15-amp-clip",
    expect=one_process,
    tolerance=CLOSE,
    judge=(inputs_untouched, replicas),
    budgets=(
        Budget(
            "collectives",
            lambda run: run.case.n_steps * (len(run.case.n_shared) + CALLS_A_STEP),
            "Too many calls. A step needs one for the shared gradients (or one for each), and one number from every "
            "rank: the squares of its own table tell both the norm and whether it is finite.",
        ),
        Budget(
            "bytes_sent",
            most_bytes,
            "Too many bytes. Beside the shared gradients one number from each rank is enough, the sum of the squares "
            "of its own table; the table stays at home.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: any(any(who) and not all(who) for who in stepped_when_spoiled(run)),
            "Where one rank found an infinity, it skipped the step and the others took it. Let the ranks decide "
            "together, from one number that has gone through an all-reduce.",
            everywhere=False,
        ),
        Hint(
            lambda run: not same_scales(run),
            "The ranks have different scales from here on: whatever decides about the step decides about the scale, on "
            "all of them.",
        ),
        Hint(
            lambda run: any(any(who) for who in stepped_when_spoiled(run)),
            "A step whose gradient is infinite or NaN was taken, which with momentum moves the parameters even where "
            "the gradient was set to zero. Skip optimizer.step() on all ranks.",
        ),
        Hint(
            times_the_scale,
            "That is the norm of the scaled gradients. Divide by the scale before you measure and clip.",
            everywhere=False,
        ),
        Hint(
            lambda run: any(norm_is(m)(run) for m in ("own scaled", "shared scaled")),
            "Some gradients are still multiplied with the scale: divide the shared ones and the own ones by it.",
            everywhere=False,
        ),
        Hint(norm_is("clipped"), "That is the norm after clipping. Return the one from before.", everywhere=False),
        Hint(
            lambda run: any(norm_is(mistake)(run) for mistake in ("before the average", "of its own version")),
            "The norm was taken before the average, of every rank's own version of the shared gradient. Average first.",
            everywhere=False,
        ),
        Hint(
            norm_is("of sums"),
            "The shared gradients are sums over the ranks: one process would have their mean.",
            everywhere=False,
        ),
        Hint(
            norm_is("alone"),
            "Each rank took the norm of what it holds, and clipped by a factor of its own. The squares of the others' "
            "tables belong into the norm.",
            everywhere=False,
        ),
        Hint(
            norm_is("n times"),
            "The shared parameters were counted once for every rank. Only the squares of the own tables are added up "
            "over the ranks.",
            everywhere=False,
        ),
        Hint(
            norm_is("shared only"),
            "The tables are missing in the norm: clipping is by the norm of all parameters.",
            everywhere=False,
        ),
        Hint(
            norm_is("own averaged"),
            "The squares of the tables were averaged over the ranks. They are different parameters: add them up.",
            everywhere=False,
        ),
        Hint(
            norm_is("own gradients averaged"),
            "The gradients of the own tables were averaged over the ranks. Each belongs to another table: only the "
            "shared ones are averaged.",
        ),
        Hint(
            lambda run: any(
                norm_is(mistake)(run)
                for mistake in ("norms added", "norms added, shared once", "norms of tables added")
            ),
            "Norms do not add up, their squares do: sum the squares over the ranks, then take the root.",
            everywhere=False,
        ),
        Hint(norm_is("squared"), "That is the square of the norm: take the root."),
        Hint(
            lambda run: right_norms(run) and any(one["scales"] != case_scales(run.case) for one in run.got["ranks"]),
            "The new scale is half the old one after a skipped step, and the old one after any other.",
        ),
        Hint(
            lambda run: right_norms(run) and compare(run.expected, run.got, CLOSE) is not None,
            "The norms are right and the steps are not: divide all gradients by the scale, and multiply them with "
            "max_norm / norm only where the norm is larger than max_norm.",
        ),
        Hint(
            lambda run: any(
                norm is not None
                for one in run.got["ranks"]
                for step, norm in enumerate(one["norms"])
                if step in spoiled_steps(run.case)
            ),
            "A gradient that was infinite or NaN has a finite norm here: was it replaced by zero?",
        ),
    ),
)


def case_scales(case: ClippedSteps) -> list[float]:
    """The scale after each step."""
    return [case.scale / 2 ** len([bad for bad in spoiled_steps(case) if bad <= step]) for step in range(case.n_steps)]
