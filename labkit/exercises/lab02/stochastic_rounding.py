"""Lab 02: rounding to bfloat16 up or down by chance, without bias."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise


@dataclass(frozen=True)
class Draws(Case):
    """Random values of a magnitude around `scale`, `n_copies` of each in a call, `n_seeds` generators.

    just_above: one value that bfloat16 has and one that lies a float32 step farther from zero, which is 2^-16 of the
    way to the next, in one call; of so many copies it is only counted how many left the first of the two.
    """

    n_values: int = 64
    n_copies: int = 1024
    n_seeds: int = 4
    scale: float = 1.0
    just_above: bool = False


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
    if case.just_above:
        exact = x[:1].to(torch.bfloat16).to(torch.float32)
        x = torch.cat([exact, (exact.view(torch.int32) | 1).view(torch.float32)])
        return {"x": x, "seeds": torch.randint(1, 10_000, (1,), generator=gen).tolist()}
    exact = x[: case.n_values // 4].to(torch.bfloat16).to(torch.float32)
    special = torch.tensor(SPECIAL_BITS, dtype=torch.int32).view(torch.float32)
    seeds = (1 + torch.randperm(10_000, generator=gen)[: case.n_seeds]).tolist()
    return {"x": torch.cat([x, exact, special]), "seeds": seeds}


def drive_rounding(ans, case: Draws, tree: dict, stage) -> dict[str, object]:
    """rounded: a call for each seed on n_copies of x, each (n_copies, len(x)).

    next: the first generator used a second time. again: the first seed in a new generator.
    left: in their place, of a case with just_above, how many copies of the two values did not become the first.
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

    if case.just_above:
        out = call(first)
        return {"left": (out.float() != copies[:, :1]).sum(0).tolist()}
    rounded = [call(first)]
    following = call(first)
    rounded += [call(torch.Generator(stage.device).manual_seed(seed)) for seed in tree["seeds"][1:]]
    again = call(torch.Generator(stage.device).manual_seed(tree["seeds"][0]))
    return {"rounded": rounded, "again": again, "next": following}


JUST_ABOVE = Draws(n_values=1, n_copies=2**21, n_seeds=1, just_above=True)
"""Of two million draws 32 should go up, which tells noise that has 2^16 values from noise that lacks the largest."""

STOCHASTIC_ROUNDING = Exercise(
    id="02-stochastic-rounding",
    title="Round up or down by chance",
    points=3,
    minutes=10,
    difficulty=3,
    answers=(Answer("stochastic_round"),),
    public=(Draws(), Draws(scale=1e-30), Draws(n_copies=512, scale=1e30), JUST_ABOVE),
    inputs=draw_inputs,
    drive=drive_rounding,
)
