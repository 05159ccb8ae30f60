"""Lab 17: what is true of finished gradients: those of one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labkit.compare import inputs_untouched
from labkit.exercises.lab17.composed import Grads, draw, one_process, parts, shapes
from labkit.exercises.lab17.mend import Finished
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle

NEAR = 1e-8
"""Of float64 gradients, relative to the norm."""


@once
def wanted(run: CaseRun[Finished]) -> list[Grads]:
    """What each rank should have."""
    layout = run.case.layout
    weights, batches = draw(layout, torch.Generator().manual_seed(run.tree["seed"]))
    return parts(one_process(layout, weights, batches), layout)


def near(got: Tensor | None, right: Tensor, factor: float = 1.0) -> bool:
    return got is not None and got.shape == right.shape and bool((got - factor * right).norm() <= NEAR * right.norm())


@once
def bad(run: CaseRun[Finished]) -> list[str]:
    """The names whose gradient is wrong on some rank."""
    ranks = list(zip(wanted(run), run.got["ranks"], strict=True))
    return [
        name for name in wanted(run)[0] if not all(near(one["grads"].get(name), right[name]) for right, one in ranks)
    ]


def as_in_one_process(run: CaseRun[Finished]) -> str | None:
    """A property: every rank has its part of one process's gradients."""
    for rank, (right, one) in enumerate(zip(wanted(run), run.got["ranks"], strict=True)):
        for name, grad in right.items():
            got = one["grads"].get(name)
            if not near(got, grad):
                norm, has = float(grad.norm()), "gone" if got is None else f"of norm {float(got.norm()):.5g}"
                also = f"{len(bad(run))} of {len(right)} parameters are wrong"
                return f"rank {rank}: the gradient of {name} should be of norm {norm:.5g}, and is {has} ({also})"
    return None


def all_bad(condition: Callable[[str, str], bool]) -> Callable[[CaseRun[Finished]], bool]:
    """A hint's condition: there are wrong parameters, and all of them are such: (name, how it is cut)."""

    def when(run: CaseRun[Finished]) -> bool:
        cuts = {name: cut for name, (_, cut) in shapes(run.case.layout).items()}
        return bool(bad(run)) and all(condition(name, cuts[name]) for name in bad(run))

    return when


def every_one_is_bad(run: CaseRun[Finished]) -> Any:
    """All gradients are wrong. Of a data group of one rank, some are right as they come."""
    return len(bad(run)) == len(wanted(run)[0]) if run.case.data > 1 else CANNOT_TELL


def all_are(factor: Callable[[Finished], float], cut: str = "") -> Callable[[CaseRun[Finished]], Any]:
    """A hint's condition: all parameters that are cut so are the right ones times a factor."""

    def when(run: CaseRun[Finished]) -> Any:
        cuts = {name: one for name, (_, one) in shapes(run.case.layout).items()}
        these = [name for name in bad(run) if not cut or cuts[name] == cut]
        return these == bad(run) and all(
            near(one["grads"].get(name), right[name], factor(run.case))
            for right, one in zip(wanted(run), run.got["ranks"], strict=True)
            for name in these
        )

    return when


def in_words(run: Observation) -> str:
    case = run.case
    return (
        f"finish_gradients(...) in a run of {case.data} data x {case.tensor} tensor ranks, {case.kv_heads} key and "
        f"value heads, {'embedding and head tied' if case.tied else 'nothing tied'}"
    )


ENDS = ("embed.weight", "head.weight")
"""One weight, where they are tied."""

MEND = Oracle(
    id="17-mend",
    call=in_words,
    judge=(inputs_untouched, as_in_one_process),
    axis="numbers of ranks and of key heads, and tied weights",
    diagnose=(
        Hint(
            all_are(lambda case: 1 / case.tensor, "whole"),
            "The gradients of what every rank holds whole are too small by a factor, the size of a tensor group: they "
            "are terms of a sum, and were averaged.",
        ),
        Hint(
            all_are(lambda case: case.data),
            "All gradients are too large by a factor, the size of a data group: each of its ranks has the mean loss of "
            "its own samples, so average over the group.",
        ),
        Hint(
            all_are(lambda case: 1 / case.tensor),
            "All gradients are too small by a factor, the size of a tensor group: divide the sum over a data group by "
            "the number of its ranks, and not by that of all ranks.",
        ),
        Hint(
            all_bad(lambda name, cut: cut == "whole" and name.endswith("bias")),
            "That is still the planted bug. o.bias and down.bias are added to this rank's tokens alone, just as norms "
            'are applied to them: of what is cut "whole", each rank has only a term of the gradient.',
        ),
        Hint(
            all_bad(lambda name, cut: name.endswith("up.bias")),
            "up.bias is cut by rows, and the gradient of a rank's part is complete. Do not sum it over the tensor "
            "group: go by how a parameter is cut, and not by its name.",
        ),
        Hint(
            all_bad(lambda name, cut: cut == "whole"),
            "What every rank holds whole is used on this rank's tokens alone: its gradient has to be summed over the "
            "tensor group.",
        ),
        Hint(
            all_bad(lambda name, cut: cut == "kv"),
            "The gradients of key and value heads are summed over `replicas`, the ranks that hold the same head, and "
            "those alone.",
        ),
        Hint(
            lambda run: all_bad(lambda name, cut: cut in ("rows", "columns"))(run) and set(bad(run)) - set(ENDS),
            "Gradients of parts that only one rank of a tensor group holds are complete: a sum over the group mixes "
            "unrelated weights.",
        ),
        Hint(
            all_bad(lambda name, cut: name in ENDS),
            "`ties` are two names of one weight: the gradient of both is the sum of the two.",
        ),
        Hint(
            every_one_is_bad,
            "All gradients are wrong. Either `grads` still has what it had, because sums went into other tensors or "
            "another dict: an all_reduce of grads[name] itself changes it. Or they were not averaged. The ranks of a "
            "data group have different samples: average over `data`, last, and over no other ranks.",
        ),
    ),
)
