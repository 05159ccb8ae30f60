"""Lab 06: what is said of a wrong Muon, by the mistake that makes the same values."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab06.adamw import Grouping
from labkit.exercises.lab06.muon import Matrix, MuonSteps
from labkit.oracles.lab06.histories import STOPS_AT_NONE, near, nothing_moved, zeros_for_none
from labkit.oracles.lab06.muon_mistakes import history, orthogonalized, orthogonalized_ways
from labkit.spec import CANNOT_TELL, CaseRun, Hint

MUCH = 1e6
"""What no element of an orthogonalized matrix comes near."""
ROUGH = 0.002, 0.1
"""How far off steps in bfloat16 are, as a share: 0.02 to 0.08 over 2,000 matrices of each kind."""


def in_matrix(when: Callable[[CaseRun[Matrix]], object]) -> Callable[[CaseRun], object]:
    """A diagnosis of orthogonalize; whatever is wrong with the steps beside it is said later."""
    return lambda run: when(run) if isinstance(run.case, Matrix) else CANNOT_TELL


def explodes(out: torch.Tensor) -> bool:
    return not out.isfinite().all() or bool(out.abs().max() > MUCH)


def as_if(*mistakes: str) -> Callable[[CaseRun], object]:
    """A diagnosis of orthogonalize: one of these mistakes explains the matrix."""

    def when(run: CaseRun[Matrix]) -> bool:
        ways = (way for mistake in mistakes for way in orthogonalized_ways(run.tree["g"], mistake))
        return any(alike(run.got["out"], way) for way in ways)

    return in_matrix(when)


def alike(got: torch.Tensor, wrong: torch.Tensor) -> bool:
    if explodes(wrong):
        return explodes(got)
    return torch.allclose(got, wrong, rtol=1e-2, atol=1e-2 * float(wrong.abs().max()))


def roughly_right(run: CaseRun[Matrix]) -> bool:
    right = orthogonalized(run.tree["g"])
    return bool(ROUGH[0] < (run.got["out"] - right).norm() / right.norm() < ROUGH[1])


def moved_as(*mistakes: str) -> Callable[[CaseRun], bool]:
    """A diagnosis: the weights went where one of these mistakes takes them, which is not where they should be."""

    def when(run: CaseRun) -> bool:
        return isinstance(run.case, MuonSteps) and any(
            near(run.got, history(run, mistake)) and not near(history(run, mistake), run.expected)
            for mistake in mistakes
        )

    return when


def sorted_wrongly(words: Callable[[list[str], list[str]], bool]) -> Callable[[CaseRun], object]:
    """A diagnosis of split_parameters: words(for Muon, for AdamW)."""

    def when(run: CaseRun) -> object:
        if not isinstance(run.case, Grouping):
            return CANNOT_TELL
        return words(run.got["for Muon"], run.got["for AdamW"])

    return when


def in_no_list(run: CaseRun) -> object:
    if not isinstance(run.case, Grouping):
        return CANNOT_TELL
    wanted = {*run.expected["for Muon"], *run.expected["for AdamW"]}
    return {*run.got["for Muon"], *run.got["for AdamW"]} < wanted


DIAGNOSE = (
    Hint(
        in_matrix(lambda run: not run.tree["g"].any()),
        "0/0: a gradient of zeros has the norm 0. Bound the norm from below, with clamp(min=1e-7).",
    ),
    Hint(
        as_if("no normalization"),
        "The polynomial is for singular values up to 1: divide the matrix by its Frobenius norm first. Otherwise "
        "large values explode, and small ones stay small.",
    ),
    Hint(
        as_if("divided by the largest singular value"),
        "The matrix was divided by its largest singular value. It is divided by its Frobenius norm, g.norm().",
    ),
    *(Hint(as_if(f"steps: {n}"), f"That is the result after {n} steps, not five.") for n in (1, 2, 3, 4, 6, 8, 10)),
    Hint(
        as_if("coefficients that converge"),
        "These are coefficients that converge to 1, slowly: five steps leave small values small. Take a, b and c "
        "as they are given.",
    ),
    Hint(
        as_if("no first power"),
        "The term with a is missing: a * x + (b * gram + c * gram @ gram) @ x.",
    ),
    Hint(
        as_if("normalized in every step"),
        "The matrix was divided by its norm in every step. Divide once, before the first one.",
    ),
    Hint(
        as_if("no fifth power"),
        "The term with c is missing: a * x + (b * gram + c * gram @ gram) @ x.",
    ),
    Hint(
        as_if("seventh power for the fifth"),
        "c belongs to gram @ gram, which makes the fifth power of each singular value. Yours makes the seventh.",
    ),
    Hint(
        as_if("exactly orthogonal"),
        "All singular values are exactly 1. The five steps leave them between 0.68 and 1.13, and the check "
        "asks for just that.",
    ),
    Hint(
        in_matrix(lambda run: explodes(run.got["out"])),
        "The values explode. Look at the division by the Frobenius norm, which comes before the first step, and at "
        "the terms: b, which is negative, belongs to gram, and c to the matrix product gram @ gram.",
    ),
    Hint(
        in_matrix(roughly_right),
        "This is right to a few percent only. Are the five steps in float32? PyTorch takes them in bfloat16, but "
        "the check wants more digits.",
    ),
    Hint(
        sorted_wrongly(lambda muon, adamw: any(name.startswith(("embedding", "front", "head")) for name in muon)),
        "Embeddings and heads are left to AdamW: their rows belong to tokens or places, each of which is seen on its "
        "own. An embedding is every nn.Embedding, whatever its name and wherever it is.",
    ),
    Hint(
        sorted_wrongly(lambda muon, adamw: any(part in name for name in muon for part in ("norm", "bias", "scale"))),
        "Vectors and single numbers have no singular values to make equal: AdamW takes them.",
    ),
    Hint(
        sorted_wrongly(lambda muon, adamw: len({*muon, *adamw}) < len(muon) + len(adamw)),
        "A parameter is listed twice, so it would be updated twice: a tied weight is one tensor.",
    ),
    Hint(
        in_no_list,
        "Some parameters are in neither list, so they would never be trained. AdamW takes all that Muon does not.",
    ),
    Hint(nothing_moved, "No weight has moved: change the parameter in place, with p.sub_(...)."),
    Hint(
        moved_as("whole"),
        "The fused matrix of queries, keys and values was orthogonalized as a whole. Its n_blocks blocks of rows "
        "are matrices of their own: update.chunk(n_blocks).",
    ),
    Hint(
        moved_as("rule of the whole"),
        "The learning rate of the fused matrix was adjusted by the shape of the whole: take that of a block.",
    ),
    Hint(
        moved_as("not orthogonalized"),
        "The update is the momentum itself: orthogonalize it first.",
    ),
    Hint(
        moved_as("whole gradients added"),
        "The buffer sums up whole gradients. Here it is a running mean: momentum * buffer + (1 - momentum) * grad.",
    ),
    Hint(
        moved_as("new and old swapped"),
        "New and old are swapped in the buffer: momentum * buffer + (1 - momentum) * grad, which is "
        "buffer.lerp_(grad, 1 - momentum).",
    ),
    Hint(
        moved_as("whole gradient on top"),
        "The update is grad + momentum * buffer, as for a buffer of whole gradients. Here the buffer is a mean: "
        "grad.lerp(buffer, momentum), which is (1 - momentum) * grad + momentum * buffer.",
    ),
    Hint(
        moved_as("lerp the other way"),
        "Nesterov's momentum is the other way round: grad.lerp(buffer, momentum) is mostly buffer.",
    ),
    Hint(
        moved_as("blocks of columns", "blocks of columns, rule of rows"),
        "The fused matrix was cut into blocks of columns. Queries, keys and values are blocks of rows.",
    ),
    Hint(
        moved_as("columns over rows"),
        "Rows and columns are swapped in the rule for the learning rate: it grows with rows / columns.",
    ),
    Hint(moved_as("no root in the rule"), "The square root is missing in the rule for the learning rate."),
    Hint(
        moved_as("decay after the update"),
        "The decay came after the update and shrank that as well: first decay the weight, then subtract.",
    ),
    Hint(moved_as("stops at None", "group stops at None"), STOPS_AT_NONE),
    Hint(moved_as("zeros in place of None"), zeros_for_none("buffer")),
    Hint(
        moved_as("decays without a gradient"),
        "A matrix without a gradient decayed. One whose p.grad is None makes no step at all.",
    ),
    Hint(moved_as("no momentum"), "The gradient alone was orthogonalized: the buffer never comes in."),
    Hint(
        moved_as("no nesterov"),
        "The buffer alone was orthogonalized. Nesterov's momentum takes grad.lerp(buffer, momentum): a bit of this "
        "step's gradient on top. The buffer has this step's gradient in it already when that is taken.",
    ),
    Hint(
        moved_as("other rule"),
        'The learning rate follows the other rule. "original" is lr * sqrt(max(1, rows / columns)), '
        '"match_rms_adamw" is lr * 0.2 * sqrt(max(rows, columns)).',
    ),
    Hint(
        moved_as("ratio below 1"),
        "A matrix with fewer rows than columns keeps the learning rate: sqrt(max(1, rows / columns)).",
    ),
    Hint(moved_as("smaller side"), "The rule takes the larger side: 0.2 * sqrt(max(rows, columns))."),
    Hint(moved_as("no 0.2"), "The factor 0.2 is missing in the rule: 0.2 * sqrt(max(rows, columns))."),
    Hint(
        moved_as("decay not times lr"),
        "The weights decay too fast: the factor is 1 - lr * weight_decay, not 1 - weight_decay.",
    ),
    Hint(moved_as("no rule"), "The learning rate is not adjusted to the shape: see the two rules."),
    Hint(moved_as("no decay"), "The weights do not decay: multiply them by 1 - lr * weight_decay."),
    Hint(
        moved_as("decay by the adjusted rate"),
        "The decay uses the adjusted learning rate. It is 1 - lr * weight_decay with the lr of the group.",
    ),
)
