"""Lab 02: four ways to add numbers, and what each costs in accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise

SUM_NAMES = ("naive_sum", "sorted_sum", "pairwise_sum", "neumaier_sum")

NOT_ANSWERED = "not answered yet"

NEVER_ENDS = "RecursionError"


@dataclass(frozen=True)
class Numbers(Case):
    """Numbers to add, in a dtype with unit roundoff u.

    kind: "ones": 1/u, then ones; the first is twice as large with n = 4.
          "levels": 1, 2/u, 4/u^2, -4/u^2, -2/u, whose sum is 1.
          "opposite": -2/u, then ones, then 4/u at the end.
          "huge": value, B, value, -B with B from 1e90 to 1e110 (1e100 where value is 1), n = 4.
          "cancelling": n values of many magnitudes and both signs, whose sum is small beside them.
          "constant": n times `value`.
    """

    kind: str
    n: int
    dtype: str = "float32"
    value: float = 1.0

    @property
    def torch_dtype(self) -> torch.dtype:
        return getattr(torch, self.dtype)


def numbers(case: Numbers, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """x: one-dimensional, in the case's dtype."""
    inverse_u = 2 / torch.finfo(case.torch_dtype).eps
    if case.kind == "ones":
        values = torch.ones(case.n, dtype=torch.float64)
        values[0] = inverse_u if case.n > 4 else 2 * inverse_u
    elif case.kind == "levels":
        large, larger = 2 * inverse_u, 4 * inverse_u**2
        values = torch.tensor([1, large, larger, -larger, -large], dtype=torch.float64)
    elif case.kind == "opposite":
        values = torch.ones(case.n, dtype=torch.float64)
        values[0], values[-1] = -2 * inverse_u, 4 * inverse_u
    elif case.kind == "huge":
        exponent = 100 if case.value == 1 else int(torch.randint(90, 111, (), generator=gen))
        values = torch.tensor([case.value, 10.0**exponent, case.value, -(10.0**exponent)], dtype=torch.float64)
    elif case.kind == "cancelling":
        half = torch.randn(case.n, generator=gen, dtype=torch.float64)
        half *= torch.exp(2 * torch.randn(case.n, generator=gen, dtype=torch.float64))
        other = -half * (1 + 1e-3 * torch.randn(case.n, generator=gen, dtype=torch.float64))
        both = torch.cat([half, other])
        values = both[torch.randperm(2 * case.n, generator=gen)][: case.n]
    else:
        values = torch.full((case.n,), case.value, dtype=torch.float64)
    return {"x": values.to(case.torch_dtype)}


def drive_sums(ans, case: Numbers, tree: dict, stage) -> dict[str, object]:
    """sums: each function's result by name; NOT_ANSWERED for a blank one, NEVER_ENDS where it only recursed.

    changed: the functions that changed their input; each gets a fresh one, so that none spoils the next.
    All on the CPU: the functions go through the elements one by one, and what is studied is rounding.
    """
    sums: dict[str, object] = {}
    changed: list[str] = []
    for name in SUM_NAMES:
        x = tree["x"].clone()
        try:
            sums[name] = getattr(ans, name)(x)
        except NotImplementedError:
            sums[name] = NOT_ANSWERED
        except RecursionError:
            sums[name] = NEVER_ENDS
        if not torch.equal(x, tree["x"]):
            changed.append(name)
    if all(isinstance(total, str) and total == NOT_ANSWERED for total in sums.values()):
        raise NotImplementedError
    return {"sums": sums, "changed": changed}


SUMS = Exercise(
    id="02-sums",
    title="Four ways to add numbers",
    points=4,
    minutes=15,
    difficulty=2,
    answers=tuple(Answer(name) for name in SUM_NAMES),
    public=(
        Numbers("ones", 1001),
        Numbers("ones", 4),
        Numbers("levels", 5),
        Numbers("opposite", 300),
        Numbers("cancelling", 501),
        Numbers("huge", 4, "float64"),
        Numbers("ones", 1001, "bfloat16"),
        Numbers("constant", 1000, "float16", 0.01),
        Numbers("constant", 1000, "bfloat16", 0.01),
        Numbers("constant", 1, "float32", 0.1),
    ),
    inputs=numbers,
    drive=drive_sums,
    forbids=(
        "torch.sum",
        "torch.Tensor.sum",
        "torch.cumsum",
        "torch.Tensor.cumsum",
        "torch.index_add",
        "torch.Tensor.index_add",
        "torch.Tensor.index_add_",
        "math.fsum",
        "numpy.sum",
        "numpy.cumsum",
        "numpy.add.reduce",
    ),
)
