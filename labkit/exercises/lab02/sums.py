"""Lab 02, second half: what a sum costs in accuracy, in time and in memory, and how to round without bias."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Run

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


WRITTEN = {
    "orders": ((16, 3), (1, 2), (2, 8), (4, 3), (4, 4), (8, 6), (4, 4), (2, 8), (1, 3), (8, 5)),
    "heaps": ((1, 6), (1, 4), (2, 6), (4, 2), (2, 7), (8, 9), (1, 3), (1, 8), (4, 1), (2, 3)),
}
"""(p, k) stands for p (1 + k 2^-52). Found by search. "orders": every other order of adding that we know ends in other
bits, but the exact sum and a list that is not made a heap do not; "heaps": these two do."""


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
    points=3,
    minutes=10,
    difficulty=2,
    answers=(Answer("merge_smallest"),),
    public=(
        Merging(10, "orders"),
        Merging(10, "heaps"),
        Merging(1),
        Merging(2),
        Merging(25),
        Merging(150, "uniform"),
        Merging(150),
        Merging(300_000, "uniform"),
    ),
    inputs=values_to_merge,
    drive=drive_merge,
    run=Run(cpu_s=4.0, wall_s=30.0),
    forbids=("math.fsum", "numpy.sum", "torch.sum"),
)


@dataclass(frozen=True)
class Blocks(Case):
    """A float16 tensor of `shape`, summed along `dim` with `block_size` slices at a time."""

    shape: tuple[int, ...]
    dim: int
    block_size: int

    @property
    def n_summed(self) -> int:
        return self.shape[self.dim]

    @property
    def n_blocks(self) -> int:
        return -(-self.n_summed // self.block_size)


def half_tensor(case: Blocks, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """x: float16 from 0 to 200, so that sums of a thousand are beyond float16's 65504."""
    return {"x": (200 * torch.rand(case.shape, generator=gen)).to(torch.float16)}


def drive_blocked(ans, case: Blocks, tree: dict, stage) -> dict[str, object]:
    """out: the sums. Run twice: the first run warms up, the second is the one that is measured and judged."""
    x = tree["x"].to(stage.device)
    ans.blocked_sum(x, case.dim, case.block_size)
    with stage.meter("ops"), stage.meter("memory"):
        out = ans.blocked_sum(x, case.dim, case.block_size)
    tree["x"] = x.cpu()
    return {"out": out, "dispatches": stage.measured["dispatches"]}


BLOCKED_SUM = Exercise(
    id="02-blocked-sum",
    title="Half-precision numbers, single-precision sum",
    points=3,
    minutes=10,
    difficulty=2,
    answers=(Answer("blocked_sum"),),
    public=(
        Blocks((1024, 256), 0, 64),
        Blocks((256, 1024), 1, 64),
        Blocks((1000, 200), 0, 128),
        Blocks((8, 1500, 24), -2, 100),
        Blocks((5, 1, 300), -1, 4),
        Blocks((5, 7), 0, 64),
    ),
    inputs=half_tensor,
    drive=drive_blocked,
    meters=("ops", "memory"),
)


@dataclass(frozen=True)
class Draws(Case):
    """Random values of a magnitude around `scale`, `n_copies` of each in a call, `n_seeds` generators."""

    n_values: int = 64
    n_copies: int = 1024
    n_seeds: int = 4
    scale: float = 1.0


SPECIAL_BITS = (
    0x00000000,
    -0x80000000,  # -0
    0x00010000,  # the smallest bfloat16
    -0x7FFE8000,  # half-way between two subnormal bfloat16
    0x00480000,  # a subnormal bfloat16
    0x3F800000,  # 1
    0x3F808000,  # half-way between two bfloat16
    0x3F80FFFF,  # just below one
    0x7F7F0000,  # the largest finite bfloat16
    0x7F7F8000,  # beyond it
    0x7F7FFFFF,  # the largest finite float32
    -0x00800001,  # and its negative
    0x7F800000,  # inf
    -0x00800000,  # -inf
    0x7FC00000,  # NaN
    0x7F800001,  # NaN, whose upper half is that of inf
    0x7FFFFFFF,  # NaN, every bit set
)


def draw_inputs(case: Draws, gen: torch.Generator) -> dict[str, object]:
    """x: float32, any values, then a quarter that bfloat16 has exactly, then the special ones; seeds: all different."""
    magnitude = case.scale * torch.exp(torch.randn(case.n_values, generator=gen))
    x = torch.where(torch.rand(case.n_values, generator=gen) < 0.5, -magnitude, magnitude)
    exact = x[: case.n_values // 4].to(torch.bfloat16).to(torch.float32)
    special = torch.tensor(SPECIAL_BITS, dtype=torch.int32).view(torch.float32)
    seeds = (1 + torch.randperm(10_000, generator=gen)[: case.n_seeds]).tolist()
    return {"x": torch.cat([x, exact, special]), "seeds": seeds}


def drive_rounding(ans, case: Draws, tree: dict, stage) -> dict[str, object]:
    """rounded: a call for each seed on n_copies of x, each (n_copies, len(x)).

    next: the first generator used a second time. again: the first seed in a new generator.
    """
    copies = tree["x"].to(stage.device).repeat(case.n_copies, 1)
    first = torch.Generator(stage.device).manual_seed(tree["seeds"][0])

    def call(generator: torch.Generator) -> object:
        x = copies.clone()
        out = ans.stochastic_round(x, generator)
        if not torch.equal(x.view(torch.int32), copies.view(torch.int32)):
            # Shown to the judge as a change of the input, which it is.
            tree["x"] = x[0].cpu()
        return out

    rounded = [call(first)]
    following = call(first)
    rounded += [call(torch.Generator(stage.device).manual_seed(seed)) for seed in tree["seeds"][1:]]
    again = call(torch.Generator(stage.device).manual_seed(tree["seeds"][0]))
    return {"rounded": rounded, "again": again, "next": following}


STOCHASTIC_ROUNDING = Exercise(
    id="02-stochastic-rounding",
    title="Round up or down by chance",
    points=3,
    minutes=10,
    difficulty=3,
    answers=(Answer("stochastic_round"),),
    public=(Draws(), Draws(scale=1e-30), Draws(n_copies=512, scale=1e30)),
    inputs=draw_inputs,
    drive=drive_rounding,
)
