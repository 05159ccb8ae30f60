"""Lab 06: weights step by step: which comes out wrong first, a case in words, and what a state may take besides."""

from __future__ import annotations

import torch

from labkit.exercises.lab06.playing import Stepping
from labkit.spec import CaseRun, Hint, KiB, Tolerance

CLOSE = Tolerance(atol=2e-5, rtol=2e-5)
"""Of weights of size 1: float32 sums in any order, over some twenty steps."""

BLOWN_UP = 1e3
"""A weight this large came of a mistake that makes weights grow: from there on the last bit of a sum decides."""

OTHER_STATE_BYTES = 4 * KiB
"""Of each tensor, besides its moments: the count of steps and what Python keeps."""

ONE_BY_ONE = (
    "What stays alive after a step fits, but the step itself makes too many temporary tensors: finish one parameter "
    "before the next, and change it in place."
)

STEP_ERRORS = {
    "'Parameter' object is not a mapping": "The optimizer was handed parameters, not groups. torch.optim.Optimizer "
    "takes either, and makes one group of parameters; a class of your own has to do the same.",
    "their p.grad is None": "Leave out a parameter whose p.grad is None, and go on with the next one: it makes no "
    "step, and its moments and its count of steps stay as they are.",
}
"""Of the oracles of optimizers their `errors`; the second is what playing.none_explained says."""

STOPS_AT_NONE = (
    "A parameter without a gradient ended the step for those that come after it. Go on with the next one: `continue`, "
    "not `return` or `break`."
)


def zeros_for_none(kept: str) -> str:
    """The hint for it; kept: what the optimizer keeps of a parameter."""
    return (
        f"A parameter without a gradient was stepped as if its gradient were zeros, so its {kept} went on. A parameter "
        "whose p.grad is None makes no step."
    )


def near(got: dict, wanted: dict) -> bool:
    """Whether two histories agree to CLOSE, step by step, until weights blow up; NaN agrees with NaN."""
    blown_up = False
    for step, weights in wanted.items():
        for name, value in weights.items():
            if not torch.allclose(got[step][name], value, rtol=CLOSE.rtol, atol=CLOSE.atol, equal_nan=True):
                return blown_up
        blown_up |= any(not (value.abs() < BLOWN_UP).all() for value in weights.values())
    return True


def in_words(case: Stepping) -> str:
    """What a case asks, without the optimizer's settings."""
    text = f"{case.n_steps} step{'s' * (case.n_steps != 1)}"
    if case.n_groups == 2:
        text += ", two groups with settings of their own"
    if case.rare:
        text += ", one parameter has a gradient in every second step only"
    if case.resumed_after is not None:
        text += f", saved and loaded after step {case.resumed_after}"
    return text


def nothing_moved(run: CaseRun[Stepping]) -> bool:
    return isinstance(run.case, Stepping) and all(
        torch.equal(value, run.tree["weights"][name]) for step in run.got.values() for name, value in step.items()
    )


def in_new_memory(run: CaseRun) -> bool:
    """Of what stays alive, parts were made where `p.data = ...` stands."""
    return any(".data = " in line for line in run.held.get("saved_bytes", ()))


IN_NEW_MEMORY = Hint(
    in_new_memory,
    "`p.data = ...` puts new memory in the place of the parameter's. Change the memory that it has: p.copy_(...), "
    "p.sub_(...).",
)


def first_off(run: CaseRun[Stepping]) -> str | None:
    """The first wrong weight of the first wrong step, as what it moved by in that step and what it should have."""
    if not isinstance(run.case, Stepping):
        return None
    before = run.tree["weights"]
    for step, right in run.expected.items():
        got = run.got[step]
        for name, value in right.items():
            off = (got[name].float() - value.float()).abs()
            if not (off <= CLOSE.atol + CLOSE.rtol * value.abs()).all():
                at = int(off.nan_to_num(nan=torch.inf).argmax())
                moved = got[name].flatten()[at] - before[name].flatten()[at]
                wanted = value.flatten()[at] - before[name].flatten()[at]
                return (
                    f"{step.capitalize()} is the first wrong one: there {name}.view(-1)[{at}] moved by {moved:.4g} "
                    f"and should have moved by {wanted:.4g}; every step before is right."
                )
        before = right
    return None
