"""Lab 06: what torch's AdamW makes of the same gradients, in how many operations, and with how much memory."""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.exercises.lab06.foreach import ForeachSteps
from labkit.oracles.calls import fields_in_words
from labkit.oracles.lab06.adam_mistakes import moved_as
from labkit.oracles.lab06.adamw import STEP_HINTS, TOO_MANY_BYTES, by_torch, two_moments
from labkit.oracles.lab06.histories import CLOSE, first_off, in_words
from labkit.spec import Budget, CaseRun, Hint, MiB, Observation, Oracle

PER_LIST = 20
"""Operations on the tensors of one group and dtype. Eight do; a loop over 40 tensors needs some 300."""


def operations(run: CaseRun[ForeachSteps]) -> float:
    lists = {(run.case.group_of(name, tuple(value.shape)), value.dtype) for name, value in run.tree["weights"].items()}
    return PER_LIST * len(lists)


def peak_bytes(run: CaseRun[ForeachSteps]) -> float:
    """Weights, gradients, moments, the weights after each step but the last, and one temporary list of all tensors."""
    return (4 + run.case.n_steps) * sum(value.nbytes for value in run.tree["weights"].values()) + MiB


def in_a_mixed_list(run: CaseRun[ForeachSteps]) -> object:
    """Too many operations where dtypes are mixed, and not elsewhere."""
    return run.case.mixed and run.measured["dispatches"] > operations(run)


def called(run: Observation) -> str:
    n = run.case.n_embeddings + 3
    dtypes = ", float32 and float64" if run.case.mixed else ""
    return f"ForeachAdamW(params, {fields_in_words(run.case.settings())}), {n} tensors{dtypes}, {in_words(run.case)}"


FOREACH = Oracle(
    id="06-foreach",
    expect=by_torch,
    tolerance=CLOSE,
    judge=(inputs_untouched,),
    call=called,
    axis="numbers of tensors, dtypes, groups, and parameters without a gradient",
    fact=first_off,
    errors={
        "must have the same number of tensors": "The lists do not belong together: leave a parameter that has no "
        "gradient in this step out of all of them, and keep their order.",
        "must have at least one tensor": "A list is empty: take the dtypes and groups that there are, and skip those "
        "without a gradient.",
    },
    budgets=(
        Budget(
            "dispatches",
            operations,
            "Too many operations for the lists of one step: call each torch._foreach_ function once for a list of "
            "all tensors of a group and dtype, and give it a list of numbers where each tensor has its own.",
        ),
        Budget("saved_bytes", two_moments, TOO_MANY_BYTES),
        Budget(
            "peak_bytes",
            peak_bytes,
            "More than one temporary number per weight is alive during a step. Make one list with torch._foreach_sqrt, "
            "change it in place with _foreach_div_ and _foreach_add_, and let _foreach_addcdiv_ do the rest.",
        ),
    ),
    diagnose=(
        Hint(
            in_a_mixed_list,
            "A list holds tensors of two dtypes. PyTorch then falls back to a loop over them: make a list for each "
            "dtype.",
        ),
        *STEP_HINTS,
        Hint(
            moved_as(
                "corrected mean kept", "corrected square kept", "root kept", "corrected root kept", "denominator kept"
            ),
            "A moment in self.state was overwritten by its corrected value or by its root, and the next step goes on "
            "from there. Only the running means themselves are kept.",
        ),
    ),
)
