"""Lab 01: what is true of a fitted scaling law, and what the usual mistakes look like.

The public tables are made from laws that the cases state; those of the hidden ones are known to the grader alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab01.scaling_law import Runs
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Tolerance

WITHIN = 0.02
"""How far the exponent may be off, relative to its size."""


def stated_law(run: CaseRun[Runs]) -> dict[str, float]:
    return dict(zip(("constant", "exponent", "irreducible"), run.case.law, strict=True))


def fit_tolerances(run: CaseRun[Runs]) -> dict[str, Tolerance]:
    """What 2 % of the exponent allows the other two to be; that they meet the table together is judged below.

    The constant is extrapolated from the middle of the table to size 1, along a slope that may be 2 % off. The line
    through the losses is up to four times flatter than that slope, because of the irreducible part. The irreducible
    loss is compared with the losses, because it may be 0.
    """
    tree = run.tree
    slope, _ = straight_line(tree["size"].log(), tree["loss"].log())
    allowed = WITHIN * (1 + 4 * abs(slope) * float(tree["size"].log().mean()))
    return {
        "constant": Tolerance(rtol=math.expm1(allowed)),
        "exponent": Tolerance(rtol=WITHIN),
        "irreducible": Tolerance(atol=WITHIN * float(tree["loss"].min())),
    }


def straight_line(x: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
    """Slope and intercept of the least-squares line; from the means, because x may be sizes of many decades."""
    from_mean = x - x.mean()
    slope = float((from_mean * (y - y.mean())).sum() / from_mean.square().sum())
    return slope, float(y.mean()) - slope * float(x.mean())


def line_above(tree: dict, irreducible: float) -> tuple[float, float]:
    """Exponent and constant of the line through the logarithms of what the losses have above this."""
    left = tree["loss"] - irreducible
    kept = left > 0
    slope, intercept = straight_line(tree["size"][kept].log(), left[kept].log())
    return -slope, math.exp(intercept)


def misfit(tree: dict, constant: float, exponent: float, irreducible: float) -> float:
    """The root mean square of the law's relative errors over the table."""
    made = irreducible + constant * tree["size"] ** -exponent
    return float((made / tree["loss"] - 1).square().mean().sqrt())


def meets_the_table(run: CaseRun) -> str | None:
    """The three tolerances together would let a law pass whose curve misses the table."""
    missed = misfit(run.tree, run.got["constant"], run.got["exponent"], run.got["irreducible"])
    return None if missed < 5e-3 else f"put back into the table, the law misses the losses by {missed:.1%} on average"


def is_law(got: object) -> bool:
    """Whether three numbers came back."""
    names = {"constant", "exponent", "irreducible"}
    return isinstance(got, dict) and got.keys() == names and all(isinstance(n, int | float) for n in got.values())


def fits(tree: dict, constant: float, exponent: float, irreducible: float) -> bool:
    return misfit(tree, constant, exponent, irreducible) < 2e-3


def fits_if(change: Callable[[float, float, float], Sequence[float]]) -> Callable:
    """A diagnosis: the law misses the table as it came back, and meets it with its numbers changed this way."""

    def diagnose(run: CaseRun[Runs]) -> bool:
        numbers = run.got["constant"], run.got["exponent"], run.got["irreducible"]
        return not fits(run.tree, *numbers) and fits(run.tree, *change(*numbers))

    return diagnose


def solved_for(tree: dict, exponent: float) -> tuple[float, float, float]:
    """The law with this exponent that meets the table best: the other two solve a linear problem."""
    size, loss = tree["size"], tree["loss"]
    middle = float(size.log().mean().exp())
    basis = torch.stack([(size / middle) ** -exponent, torch.ones_like(size)], 1) / loss[:, None]
    constant, irreducible = torch.linalg.lstsq(basis, torch.ones_like(size)[:, None]).solution[:, 0].tolist()
    return constant * middle**exponent, exponent, irreducible


def only_the_constant_is_off(run: CaseRun[Runs]) -> bool:
    """Exponent and irreducible loss meet the table, with another constant."""
    best_constant, exponent, _ = solved_for(run.tree, run.got["exponent"])
    as_it_is, rescaled = (
        fits(run.tree, n, exponent, run.got["irreducible"]) for n in (run.got["constant"], best_constant)
    )
    return rescaled and not as_it_is


SEARCH_STEP = 0.1
"""An exponent that is off by more was not missed between the points of a grid: the search has not come so far."""


def solved_for_another_exponent(run: CaseRun[Runs]) -> bool:
    """The other two are the best for this exponent, and one a little higher or lower meets the table better."""
    tree, got = run.tree, run.got
    constant, exponent, irreducible = solved_for(tree, got["exponent"])
    others = (misfit(tree, *solved_for(tree, factor * exponent)) for factor in (0.97, 1.03))
    return (
        math.isclose(got["constant"], constant, rel_tol=0.02)
        and math.isclose(got["irreducible"], irreducible, abs_tol=0.02 * float(tree["loss"].min()))
        and 0.98 * misfit(tree, constant, exponent, irreducible) > min(others)
        # The line through log(loss - E) for a wrong E is close to it, and has its own hint.
        and abs(got["constant"] / constant - 1) < abs(got["constant"] / line_above(tree, got["irreducible"])[1] - 1)
    )


def misses_by(run: CaseRun[Runs]) -> float:
    """How far the exponent is off."""
    return abs(run.got["exponent"] - run.expected["exponent"])


def near(found: float, wanted: float) -> bool:
    return math.isclose(found, wanted, rel_tol=5e-3)


def line_without_logs(run: CaseRun[Runs]) -> bool:
    """Slope and intercept of a straight line through the losses, over the sizes or over their logarithms."""
    size, loss = run.tree["size"], run.tree["loss"]
    lines = [straight_line(x, loss) for x in (size, size.log(), size.log10())]
    return any(
        near(abs(run.got["exponent"]), abs(slope))
        and (near(run.got["constant"], high) or near(run.got["irreducible"], high))
        for slope, high in lines
    )


def line_through_the_logs(run: CaseRun[Runs]) -> bool:
    slope, _ = straight_line(run.tree["size"].log(), run.tree["loss"].log())
    return near(run.got["exponent"], -slope)


def line_for_this_irreducible(run: CaseRun[Runs]) -> bool:
    """For the irreducible loss that came back, the other two are those of the line through the logarithms."""
    exponent, _ = line_above(run.tree, run.got["irreducible"])
    return math.isclose(run.got["exponent"], exponent, rel_tol=0.02)


def call_of(run: Observation) -> str:
    """The call, and the law behind the public table."""
    constant, exponent, irreducible = run.case.law
    noise = f", with {run.case.noise:.2%} of noise" if run.case.noise else ""
    law = f"loss = {irreducible:g} + {constant:.6g} * size ** -{exponent:g}{noise}"
    return f"fit_scaling_law(size, loss) with {run.case.n_runs} runs of {law}"


SCALING_LAW = Oracle(
    id="01-scaling-law",
    expect=stated_law,
    tolerance=fit_tolerances,
    judge=(inputs_untouched, meets_the_table),
    call=call_of,
    places={"constant": "constant A", "exponent": "exponent α", "irreducible": "irreducible loss E"},
    diagnose=(
        Hint(
            lambda run: not is_law(run.got),
            "Return three numbers: the constant A, the exponent α and the irreducible loss E, in this order.",
        ),
        Hint(
            lambda run: any(math.isnan(value) for value in run.got.values()),
            "NaN: the logarithm of a negative number. loss - E must stay above 0, so E stays below the smallest loss.",
        ),
        Hint(
            fits_if(lambda constant, exponent, irreducible: (constant, -exponent, irreducible)),
            "The exponent has the wrong sign. The slope of the line is -α: the law divides by size to the power of α.",
        ),
        Hint(
            fits_if(lambda constant, exponent, irreducible: (math.exp(constant), exponent, irreducible)),
            "The constant is still a logarithm: the line's intercept is log A, so A = exp(intercept).",
        ),
        Hint(
            fits_if(lambda constant, exponent, irreducible: (10**constant, exponent, irreducible)),
            "The constant is still a logarithm: the line's intercept is log10 A, so A = 10**intercept.",
        ),
        Hint(
            fits_if(lambda constant, exponent, irreducible: (10 ** math.log(constant), exponent, irreducible)),
            "Two bases are mixed: the intercept of a line through log10 is undone by 10**, not by exp.",
        ),
        Hint(
            fits_if(lambda constant, exponent, irreducible: (constant**exponent, exponent, irreducible)),
            "The constant came back as Kaplan's N_c, with (N_c / N)**α. Asked for is A = N_c**α, the factor of N**-α.",
        ),
        *(
            Hint(
                fits_if(lambda *numbers, order=order: [numbers[i] for i in order]),
                "The numbers have changed places: the order is A, α, E.",
            )
            for order in itertools.permutations(range(3))
        ),
        Hint(
            only_the_constant_is_off,
            "α and E are right, A is not. A fit in size / middle gives A for that unit: multiply it by middle**α.",
        ),
        Hint(
            line_without_logs,
            "That is the slope of a straight line through the losses themselves. A power law is straight only where "
            "both axes are logarithms, and only after E is subtracted.",
        ),
        Hint(
            line_through_the_logs,
            "That is the straight line through log(loss). It bends where the loss nears its irreducible part: subtract "
            "E before you take the logarithm, and find E too.",
        ),
        Hint(
            lambda run: run.got["irreducible"] >= float(run.tree["loss"].min()) * 0.999,
            "The irreducible loss is the smallest loss of the table, or larger. It is what an infinite model would "
            "have: look for it below all losses.",
        ),
        Hint(
            lambda run: run.memo(solved_for_another_exponent) and misses_by(run) <= SEARCH_STEP,
            "A and E are the best for your α, but an α close by meets the table better: search again around the best "
            "one, in finer steps.",
        ),
        Hint(
            lambda run: run.memo(solved_for_another_exponent) and (misses_by(run) > SEARCH_STEP or CANNOT_TELL),
            "A and E are the best for your α, but a much larger or smaller α meets the table better. Exponents lie "
            "between 0.05 and 2.5: does the search reach that far?",
        ),
        Hint(
            line_for_this_irreducible,
            "For your irreducible loss the line is right; it is E itself that is off. Try many values of E (or of α, "
            "for which the law is linear in A and E) and keep the one whose law misses the table least.",
        ),
        Hint(
            lambda run: not fits(run.tree, run.got["constant"], run.got["exponent"], run.got["irreducible"]),
            "Put your law back into the table: it misses the losses by far more than their noise. If an optimizer "
            "found it, it stopped too early; search over one number and solve for the other two.",
        ),
        Hint(
            lambda run: True,
            "Your law is close to the table, but the exponent and E make up for each other: search more finely around "
            "the best value.",
        ),
    ),
)
