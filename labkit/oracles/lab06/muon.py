"""Lab 06: what is true of Muon: singular values through a polynomial, and weights after each step."""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.exercises.lab06.adamw import Grouping, LanguageModel
from labkit.exercises.lab06.muon import N_ITERATIONS, Matrix, MuonSteps
from labkit.oracles.calls import as_call, fields_in_words
from labkit.oracles.lab06.histories import (
    CLOSE,
    ONE_BY_ONE,
    OTHER_STATE_BYTES,
    STEP_ERRORS,
    first_off,
    in_words,
)
from labkit.oracles.lab06.muon_hints import DIAGNOSE
from labkit.oracles.lab06.muon_mistakes import history, orthogonalized
from labkit.spec import EXACT, Budget, CaseRun, KiB, MiB, Observation, Oracle, Tolerance

CLOSE_MATRIX = Tolerance(atol=1e-3, rtol=1e-3)
"""float32: the polynomial is 485 times as steep at 0 as a line, and multiplies rounding by that."""
TOO_MANY_BYTES = "More than one float32 number per weight stays alive: Muon keeps one buffer, and no second moment."


def exactly(run: CaseRun) -> dict:
    case = run.case
    if isinstance(case, Matrix):
        return {"out": orthogonalized(run.tree["g"])}
    if isinstance(case, MuonSteps):
        return history(run, "")
    model = LanguageModel(case)
    names = [name for name, value in model.named_parameters() if value.dim() == 2 and name.startswith("blocks")]
    others = sorted({name for name, _ in model.named_parameters()} - set(names))
    return {"for Muon": sorted(names), "for AdamW": others}


def tolerance(run: CaseRun) -> Tolerance:
    return CLOSE_MATRIX if isinstance(run.case, Matrix) else EXACT if isinstance(run.case, Grouping) else CLOSE


def numel(run: CaseRun) -> list[int]:
    if isinstance(run.case, Matrix):
        return [run.tree["g"].numel()]
    return [value.numel() for value in run.tree["weights"].values()] if isinstance(run.case, MuonSteps) else [4096]


def kept_bytes(run: CaseRun) -> float:
    return sum(4 * n + OTHER_STATE_BYTES for n in numel(run)) + 64 * KiB * isinstance(run.case, Grouping)


def peak_bytes(run: CaseRun) -> float:
    """Weights, gradients, one buffer, the weights after each step; temporary tensors for the largest matrix.

    Where a single matrix is orthogonalized the wrong way round, the FLOPs say so.
    """
    if isinstance(run.case, Matrix):
        return 64 * MiB
    sizes = [4 * n for n in numel(run)]
    n_steps = run.case.n_steps if isinstance(run.case, MuonSteps) else 0
    return (3 + n_steps) * sum(sizes) + 12 * max(sizes) + MiB


def flops(run: CaseRun) -> float:
    """Of each iteration on n rows and m >= n columns: x x', its square, and their sum times x."""
    if isinstance(run.case, Grouping):
        return 0.0
    if isinstance(run.case, Matrix):
        return of_iterations(*run.tree["g"].shape)
    shapes = [(8, 8)] * 3 + [tuple(value.shape) for name, value in run.tree["weights"].items() if name != "qkv"]
    return (run.case.n_steps + 8) * sum(of_iterations(*shape) for shape in shapes)


def of_iterations(rows: int, columns: int) -> float:
    n, m = min(rows, columns), max(rows, columns)
    return 1.05 * N_ITERATIONS * (4 * n * n * m + 2 * n**3)


def called(run: Observation) -> str:
    if isinstance(run.case, Matrix):
        return as_call("orthogonalize", run.tree["g"])
    if isinstance(run.case, Grouping):
        tied = "tied to the embedding" if run.case.tied else "of its own"
        places = ", and an embedding of places" * run.case.places
        return f"split_parameters(model), model with {run.case.n_layers} blocks and a head {tied}{places}"
    return f"Muon(params, {fields_in_words(run.case.settings())}), {in_words(run.case)}"


MUON = Oracle(
    id="06-muon",
    expect=exactly,
    tolerance=tolerance,
    judge=(inputs_untouched,),
    call=called,
    axis="shapes, sizes, models and settings",
    fact=first_off,
    errors=STEP_ERRORS,
    budgets=(
        Budget("saved_bytes", kept_bytes, TOO_MANY_BYTES),
        Budget("peak_bytes", peak_bytes, ONE_BY_ONE),
        Budget(
            "flops",
            flops,
            "Too many FLOPs: of a matrix with more rows than columns take the transpose, so that x @ x.T is the "
            "smaller of the two products, and transpose back at the end.",
        ),
    ),
    diagnose=DIAGNOSE,
)
