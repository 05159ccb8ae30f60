"""Lab 02: a sum that always adds the two smallest numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Run

WRITTEN = {
    "orders": ((16, 3), (1, 2), (2, 8), (4, 3), (4, 4), (8, 6), (4, 4), (2, 8), (1, 3), (8, 5)),
    "heaps": ((1, 6), (1, 4), (2, 6), (4, 2), (2, 7), (8, 9), (1, 3), (1, 8), (4, 1), (2, 3)),
    "levels": ((2, 2), (16, 4), (8, 4), (4, 7), (16, 1), (2, 8), (8, 8), (16, 3), (1, 1), (4, 4)),
}
"""(p, k) stands for p (1 + k 2^-52). Found by search: "orders" ends in other bits for most other orders of adding,
"heaps" for the exact sum and for a list that is not made a heap, "levels" for sorted values added pair by pair."""

MANY = 500_000
"""On a slow machine Python's own queue, with a lock around each step, takes a third of the limit below for so many; a
list whose entries move takes more than the limit on a machine four times as fast."""


@dataclass(frozen=True)
class Merging(Case):
    """n values >= 0, times `scale`. kind: one of WRITTEN, "uniform" on [0, 1), or "magnitudes" from e^-5 to e^5."""

    n: int
    kind: str = "magnitudes"
    scale: float = 1.0


def values_to_merge(case: Merging, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """values: float64, one-dimensional, in no order."""
    if case.kind in WRITTEN:
        values = torch.tensor([power * (1 + k * 2.0**-52) for power, k in WRITTEN[case.kind]], dtype=torch.float64)
    else:
        values = torch.rand(case.n, generator=gen, dtype=torch.float64)
    if case.kind == "magnitudes":
        values = torch.exp(10 * values - 5)
    return {"values": values * case.scale}


def drive_merge(ans, case: Merging, tree: dict, stage) -> dict[str, object]:
    """out: the sum of the values, which are handed over as a list of Python floats."""
    values = tree["values"].tolist()
    out = ans.merge_smallest(values)
    if values != tree["values"].tolist():
        # Shown to the judge as a change of the input, which it is; what the list became does not matter.
        tree["values"] = tree["values"][:0]
    return {"out": out}


MERGE_SMALLEST = Exercise(
    id="02-merge-smallest",
    title="Always add the two smallest",
    points=0.9,
    optional=True,
    minutes=10,
    difficulty=2,
    answers=(Answer("merge_smallest"),),
    public=(
        Merging(10, "orders"),
        Merging(10, "heaps"),
        Merging(10, "levels"),
        Merging(1),
        Merging(2),
        Merging(25),
        Merging(150, "uniform"),
        Merging(150),
        Merging(MANY, "uniform"),
    ),
    inputs=values_to_merge,
    drive=drive_merge,
    run=Run(cpu_s=10.0, wall_s=60.0),
    forbids=("math.fsum", "numpy.sum", "torch.sum"),
)
