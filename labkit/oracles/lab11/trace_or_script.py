"""Lab 11: what makes a counter-example one, and what an exported gate has to give."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab11.trace_or_script import Exported, Gate
from labkit.spec import Observation, Oracle

Property = Callable[[Observation], str | None]


def _with_hint(hint: str) -> Callable[[Property], Property]:
    def hinted(holds: Property) -> Property:
        holds.hint = hint
        return holds

    return hinted


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, atol=1e-5, rtol=1e-4, equal_nan=True)


@_with_hint("Choose two tensors of the same shape and dtype: the branch is to depend on the values alone.")
def branch_by_values(run: Observation) -> str | None:
    return None if run.got["branch"]["same_shape"] else "branch_lost: the two inputs differ in shape or dtype"


@_with_hint(
    "A counter-example is a function without chance and without memory: only the branch may make the difference."
)
def branch_repeats(run: Observation) -> str | None:
    branch = run.got["branch"]
    same = _same(branch["other"][0], branch["again"]) and _same(*branch["example"])
    return None if same else "branch_lost: the function does not give the same result twice"


@_with_hint(
    "This counter-example traces right. The trace holds the operations that ran for the example: the other input has "
    "to take the other way, by an `if` on its values, and the two ways have to differ."
)
def branch_is_lost(run: Observation) -> str | None:
    if _same(*run.got["branch"]["other"]):
        return "branch_lost: for the second input the traced function gives what Python gives"
    return None


@_with_hint("In eval mode the module has to be a plain function, and its trace in eval mode has to be right.")
def mode_repeats(run: Observation) -> str | None:
    mode = run.got["mode"]
    same = _same(mode["eager"], mode["again"]) and _same(mode["eager"], mode["traced_in_eval"])
    return (
        None if same else "mode_lost: in eval mode the module differs from call to call, or from its trace in eval mode"
    )


@_with_hint(
    "This module does the same in both modes. Take one that does not: dropout, batch normalization, or an `if "
    "self.training` of your own. The trace keeps the mode in which it was made."
)
def mode_is_lost(run: Observation) -> str | None:
    if _same(run.got["mode"]["eager"], run.got["mode"]["traced"]):
        return "mode_lost: traced in training mode and switched to eval, it gives what the module gives in eval"
    return None


@_with_hint("The scripted function has to be right for the first arguments.")
def script_is_right(run: Observation) -> str | None:
    return None if _same(*run.got["script"]["good"]) else "fails_late: for the first arguments the results differ"


@_with_hint(
    "The types of the second arguments have to be right as well: tensors. Which property of a tensor does its type not "
    "name?"
)
def script_types_fit(run: Observation) -> str | None:
    return None if run.got["script"]["tensors"] else "fails_late: not all of the second arguments are tensors"


@_with_hint(
    "The scripted function runs for the second arguments, too. Scripting knows that both are tensors and nothing of "
    "their shapes: take shapes that do not fit together."
)
def script_fails(run: Observation) -> str | None:
    return None if run.got["script"]["raised"] else "fails_late: the second arguments raise no error"


@_with_hint(
    "The exported graph has no branch. With torch.where both layers run for every batch, a trace keeps one of them: "
    "torch.cond(predicate, if_true, if_false, (x,)) keeps both in the graph, and one of them runs."
)
def branch_is_kept(run: Observation) -> str | None:
    return None if run.got["keeps_the_branch"] else "export_gate: there is no torch.cond in the exported graph"


def _refused(run: Observation) -> list[tuple[int, str]]:
    """(rows, what is raised) for each batch that the program does not take."""
    pairs = zip(run.tree["batches"], run.got["exported"], strict=True)
    return [(len(batch), one) for batch, one in pairs if isinstance(one, str)]


def _of_bounds(message: str) -> bool:
    return ">=" in message or "<=" in message


@_with_hint(
    "Without dynamic_shapes the sizes of the example are guards of the program. Say that axis 0 may change: "
    'dynamic_shapes=({0: torch.export.Dim("rows")},), or Dim.DYNAMIC.'
)
def export_takes_other_sizes(run: Observation) -> str | None:
    for n_rows, message in _refused(run):
        if not _of_bounds(message):
            return f"export_gate: a batch of {n_rows} rows raises: {message}"
    return None


@_with_hint(
    "The number of rows may change, but only within bounds: those that `Dim` was given as min and max, or that the "
    "code asks for. The program has to take any number from 2 on."
)
def export_takes_all_sizes(run: Observation) -> str | None:
    refused = _refused(run)
    return f"export_gate: a batch of {refused[0][0]} rows raises: {refused[0][1]}" if refused else None


@_with_hint("Each way of the branch has to run its own layer: `up` where the sum is positive, `down` where it is not.")
def export_is_right(run: Observation) -> str | None:
    gate = Gate(run.case.width)
    gate.load_state_dict(run.tree["weights"])
    for batch, got in zip(run.tree["batches"], run.got["exported"], strict=True):
        with torch.no_grad():
            expected = gate(batch)
        if not _same(got, expected):
            sign = "positive" if batch.sum() > 0 else "negative"
            return f"export_gate: a batch of {len(batch)} rows with a {sign} sum gives other values than the gate"
    return None


def called(run: Observation) -> str:
    case: Exported = run.case
    return (
        f"your examples, and export_gate(Gate({case.width}), a batch of {case.sizes[0]} rows) run on batches of "
        f"{', '.join(map(str, case.sizes))} rows"
    )


NO_LAMBDA = "torch.jit.script reads source and knows no lambda: write the function of `fails_late` with def."

TRACE_OR_SCRIPT = Oracle(
    id="11-trace-or-script",
    judge=(
        branch_by_values,
        branch_repeats,
        branch_is_lost,
        mode_repeats,
        mode_is_lost,
        script_types_fit,
        script_is_right,
        script_fails,
        export_takes_other_sizes,
        export_takes_all_sizes,
        branch_is_kept,
        export_is_right,
        inputs_untouched,
    ),
    call=called,
    axis="widths and sizes of batches",
    errors={
        "Could not guard on data-dependent expression": "An `if` on values cannot be exported. Say it with "
        "torch.cond(predicate, if_true, if_false, (x,)).",
        "not in range [": "The bounds of the `Dim` leave out the example's own number of rows. The program has to take "
        "any number from 2 on, so it needs no bounds.",
        "Constraints violated": "An axis was named in dynamic_shapes that cannot change: the layers fix the width, "
        "which is axis 1. The number of rows is axis 0.",
        "Lambda aren't supported": NO_LAMBDA,
        "Expected a single top-level function": NO_LAMBDA,
    },
)
