"""Lab 15: what is true of a step with loss scaling and clipping: all ranks do what one process would do."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab15.amp_clip import LEARNING_RATE, MOMENTUM, ClippedSteps, finite
from labkit.oracles.calls import as_call
from labkit.oracles.lab15.clipping_mistakes import alike, norms_with
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle, Tolerance

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


def in_students_names(run: Observation) -> str:
    """The call of a step, on how many ranks, and which gradients are spoiled."""
    case = run.case
    call = as_call("amp_clip_step", scale=case.scale, max_norm=case.max_norm).replace(
        "(", "(comm, shared, own, optimizer, "
    )
    said = [f"{call} for {case.n_steps} steps on {case.n_ranks} rank{'s' * (case.n_ranks > 1)}"]
    said += [
        f"{what} in a gradient of {'its own table' if where == 'own' else 'what is shared'} on rank {rank} in step "
        f"{step + 1}"
        for step, rank, where, what in case.spoiled
    ]
    return ", ".join(said)


def mean_of(tree: dict, step: int, number: int) -> Tensor:
    """The averaged gradient of a shared parameter."""
    return torch.stack([part["shared_grads"][step][number] for part in tree["ranks"]]).mean(0)


def norm_is(*mistakes: str) -> Any:
    """A diagnosis: as long as all ranks have one scale, each rank's norms are those that one of these mistakes gives.
    CANNOT_TELL where these are the right ones."""

    def when(run: CaseRun[ClippedSteps]) -> Any:
        n_steps, told = begun_with_one_scale(run), False
        right = norms_with(run, "")[:n_steps]
        got = [[one["norms"][step] for one in run.got["ranks"]] for step in range(n_steps)]
        for mistake in mistakes:
            wrong = norms_with(run, mistake)[:n_steps]
            if not alike(wrong, right, rtol=1e-3):
                told = True
                if alike(wrong, got, rtol=1e-4):
                    return True
        return False if told else CANNOT_TELL

    return when


def begun_with_one_scale(run: CaseRun[ClippedSteps]) -> int:
    """How many steps: after that, gradients of different scales are averaged."""
    after = zip(*(one["scales"] for one in run.got["ranks"]), strict=True)
    agree = itertools.takewhile(lambda scales: len(set(scales)) == 1, after)
    return min(1 + sum(1 for _ in agree), run.case.n_steps)


def same_scales(run: CaseRun[ClippedSteps]) -> bool:
    return all(one["scales"] == run.got["ranks"][0]["scales"] for one in run.got["ranks"])


def some_kept_scale(run: CaseRun[ClippedSteps]) -> Any:
    """Some rank has the same scale before and after a step that is to be skipped. CANNOT_TELL where there is none."""
    if not spoiled_steps(run.case):
        return CANNOT_TELL
    scales = [[run.case.scale, *one["scales"]] for one in run.got["ranks"]]
    return any(one[step] == one[step + 1] for one in scales for step in spoiled_steps(run.case))


def spoiled_steps(case: ClippedSteps) -> set[int]:
    return {step for step, *_ in case.spoiled}


def moved(run: CaseRun[ClippedSteps], rank: int, step: int) -> bool:
    """Whether the rank's parameters changed in this step."""
    after = run.got["ranks"][rank]["after"]
    before = {"shared": run.tree["shared"], "own": run.tree["ranks"][rank]["own"]} if step == 0 else after[step - 1]
    return compare(before, after[step]) is not None


def decided_alone(run: CaseRun[ClippedSteps]) -> Any:
    """In a step that an infinity or NaN spoiled, some ranks moved and others did not. CANNOT_TELL where each such step
    was spoiled on all ranks."""
    ranks_by_step = {
        step: {rank for at, rank, *_ in run.case.spoiled if at == step} for step in spoiled_steps(run.case)
    }
    if ranks_by_step and all(len(ranks) == run.case.n_ranks for ranks in ranks_by_step.values()):
        return CANNOT_TELL
    return any(any(who) and not all(who) for who in stepped_when_spoiled(run))


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
    places={
        "norms.*": "norm returned in step {0}",
        "scales.*": "scale returned in step {0}",
        "after.*.shared.*": "shared parameter after step {0}",
        "after.*.own": "own parameter after step {0}",
    },
    call=in_students_names,
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
            "of its own table; the table itself is not sent.",
        ),
    ),
    diagnose=(
        Hint(
            decided_alone,
            "Where one rank found an infinity, it skipped the step and the others took it. Let the ranks decide "
            "together, from one number that has gone through an all-reduce.",
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
            norm_is("scaled"),
            "That is the norm of the scaled gradients. Divide by the scale before you measure and clip.",
        ),
        Hint(
            norm_is("own scaled", "shared scaled"),
            "Some gradients are still multiplied by the scale: divide the shared ones and the own ones by it.",
        ),
        Hint(norm_is("clipped"), "That is the norm after clipping. Return the one from before."),
        Hint(
            norm_is("alone, before the average"),
            "Each rank took the norm of its own gradients before the average. Average the shared ones first; the "
            "squares of the others' tables belong in the norm, too.",
        ),
        Hint(
            norm_is("before the average", "of its own version"),
            "The norm was taken before the average, of every rank's own version of the shared gradient. Average first.",
        ),
        Hint(
            norm_is("of sums"),
            "The shared gradients are sums over the ranks: one process would have their mean.",
        ),
        Hint(
            norm_is("alone"),
            "Each rank took the norm of what it holds, and clipped by a factor of its own. The squares of the others' "
            "tables belong in the norm.",
        ),
        Hint(
            norm_is("its table alone"),
            "Each rank took the norm of its own table alone. The norm is that of all parameters: the shared ones once, "
            "and the tables of all ranks.",
        ),
        Hint(
            norm_is("n times"),
            "The shared parameters were counted once for every rank. Only the squares of the own tables are added up "
            "over the ranks.",
        ),
        Hint(
            norm_is("shared only"),
            "The tables are missing in the norm: clipping is by the norm of all parameters.",
        ),
        Hint(
            norm_is("own averaged"),
            "The squares of the tables were averaged over the ranks. They are different parameters: add them up.",
        ),
        Hint(
            norm_is("own gradients averaged"),
            "The gradients of the own tables were averaged over the ranks. Each belongs to another table: only the "
            "shared ones are averaged.",
        ),
        Hint(
            norm_is("norms added", "norms added, shared once", "norms of tables added"),
            "Norms do not add up, their squares do: sum the squares over the ranks, then take the root.",
        ),
        Hint(
            norm_is("largest of the tables"),
            "Of the tables' squares only the largest was counted. They belong to different parameters: add them up "
            "over the ranks.",
        ),
        Hint(norm_is("squared"), "That is the square of the norm: take the root."),
        Hint(
            lambda run: right_norms(run) and any(one["scales"] != case_scales(run.case) for one in run.got["ranks"]),
            "The new scale is half the old one after a skipped step, and the old one after any other.",
        ),
        Hint(
            some_kept_scale,
            "A rank kept its scale after a step that all ranks skipped. What decides about the step, the norm of all "
            "gradients, decides about the scale: halve it on every rank.",
        ),
        Hint(
            lambda run: right_norms(run) and compare(run.expected, run.got, CLOSE) is not None,
            "The norms are right and the steps are not: divide all gradients by the scale, and multiply them by "
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
