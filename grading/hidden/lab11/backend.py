"""Lab 11: hidden programs for a backend."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.backend import Program
from labkit.exercises.lab11.programs import BREAK

_UNARY = ("torch.sin({})", "{}.exp()", "F.silu({})", "{} * 3", "torch.relu({})", "{} - 1", "{}.sigmoid()")
_BINARY = ("{} + {}", "{} * {}", "torch.maximum({}, {})", "{} - {}")
_WRITES = ("{}.mul_(2)", "{}[0] = 0", "{} += 1", "torch.sin({0}, out={0})")


def program(rng: random.Random, n_lines: int, share_dead: float, n_writes: int = 0, breaks: bool = False) -> Program:
    """Random lines on what is alive, and dead ones that read anything and are read by dead ones only."""
    live, dead, lines = ["x", "y"], [], []
    for number in range(n_lines):
        is_dead = rng.random() < share_dead and number > 0
        name = f"{'t' if is_dead else 'v'}{number}"
        values = live + dead if is_dead else live
        form = rng.choice(_UNARY if rng.random() < 0.5 else _BINARY)
        lines.append(f"{name} = {form.format(*rng.choices(values, k=2))}")
        (dead if is_dead else live).append(name)
        if number == n_lines // 2 and breaks:
            lines.append(BREAK)
    for name in rng.sample(live[2:], k=min(n_writes, len(live) - 2)):
        lines.append(rng.choice(_WRITES).format(name))
    return Program((*lines, *_sum_in_steps(live[2:]), f"return total, {live[-1]}"), (rng.randint(2, 9),))


def _sum_in_steps(names: list[str]) -> list[str]:
    """One operation a line, so that everything alive is needed."""
    lines, last = [], names[0]
    for number, name in enumerate(names[1:], 1):
        made = "total" if number == len(names) - 1 else f"s{number}"
        lines.append(f"{made} = {last} + {name}")
        last = made
    return lines if len(names) > 1 else [f"total = {names[0]} + 0"]


def programs(rng: random.Random) -> tuple[Program, ...]:
    return (
        program(rng, rng.randint(3, 5), 0.0),
        program(rng, rng.randint(8, 12), 0.4),
        program(rng, rng.randint(8, 12), 0.3, n_writes=3),
        program(rng, rng.randint(10, 14), 0.4, n_writes=1, breaks=True),
        Program(
            ("a = x * 2", "t = a.exp()", "y.copy_(a)", "b = a.sum()", "return b"),
            sizes=tuple(rng.sample(range(2, 9), 3)),
        ),
    )


BACKEND = Hidden("11-backend", programs)
