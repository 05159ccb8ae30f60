"""Lab 01: a scaling law from a table of runs: what is asked, given and run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise

EXPONENTS = {
    "flat": (0.1, 0.17),
    "usual": (0.2, 0.4),
    "steep": (0.6, 1.0),
    "steeper": (1.2, 1.6),
    "steepest": (1.9, 2.3),
}
"""From which range a law's exponent is drawn."""


@dataclass(frozen=True)
class Law:
    """loss(size) = irreducible + constant * size ** -exponent."""

    constant: float
    exponent: float
    irreducible: float


@dataclass(frozen=True)
class Runs(Case):
    """A table of runs whose losses follow a law, up to a relative error `noise`.

    law: (constant, exponent, irreducible), or nothing where the law is drawn, its exponent by `slope`.
    smallest: the size of the smallest model; n_decades: how many powers of ten the sizes span, or None where they span
    as many as it takes for the part of the loss that can still fall to become 15 times smaller.
    """

    n_runs: int
    noise: float
    slope: str = "usual"
    smallest: float = 1e5
    n_decades: float | None = None
    law: tuple[float, ...] = ()


def law_of(case: Runs, gen: torch.Generator) -> Law:
    """The case's own law, or one drawn from gen: of sizes and losses as language models have them."""
    if case.law:
        return Law(*case.law)

    def draw(low: float, high: float) -> float:
        return low + (high - low) * torch.rand((), generator=gen, dtype=torch.float64).item()

    exponent = draw(*EXPONENTS[case.slope])
    return Law(draw(2.0, 4.0) * case.smallest**exponent, exponent, draw(1.0, 2.2))


def table_of_runs(case: Runs, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """size and loss, float64, one run each, from the smallest model to the largest."""
    law = law_of(case, gen)
    n_decades = case.n_decades or math.log10(15) / law.exponent
    first = math.log10(case.smallest)
    size = torch.logspace(first, first + n_decades, case.n_runs, dtype=torch.float64).round()
    loss = law.irreducible + law.constant * size**-law.exponent
    return {
        "size": size,
        "loss": loss * (1 + case.noise * torch.randn(case.n_runs, generator=gen, dtype=torch.float64)),
    }


def drive_fit(ans, case: Runs, tree: dict, stage) -> object:
    """The three numbers by name; a one-element tensor counts as its number."""
    fitted = ans.fit_scaling_law(tree["size"], tree["loss"])
    if not isinstance(fitted, tuple | list) or len(fitted) != 3:
        return fitted
    numbers = [x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else x for x in fitted]
    return dict(zip(("constant", "exponent", "irreducible"), numbers, strict=True))


SCALING_LAW = Exercise(
    id="01-scaling-law",
    title="The law behind a table of runs",
    points=1,
    optional=True,
    minutes=30,
    difficulty=3,
    answers=(Answer("fit_scaling_law"),),
    public=(
        Runs(20, 0.0, smallest=1e5, n_decades=6.0, law=(8.8e13**0.076, 0.076, 0.0)),
        Runs(24, 0.0, smallest=1e7, n_decades=3.5, law=(406.4, 0.34, 1.69)),
        Runs(30, 3e-4, smallest=1e6, law=(40.0, 0.2, 1.9)),
        Runs(30, 3e-4, smallest=64.0, law=(120.0, 0.9, 1.2)),
        Runs(24, 3e-4, smallest=32.0, law=(300.0, 1.4, 1.1)),
        Runs(20, 1e-4, smallest=40.0, law=(4000.0, 2.0, 1.5)),
    ),
    inputs=table_of_runs,
    drive=drive_fit,
)
