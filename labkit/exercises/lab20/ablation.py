"""Lab 20: what each knob of a script saves, alone and beside the others, from runs of it.

What a run comes to is drawn here, as the peak of a step comes about: memory is held in phases, a knob changes what some
things take, and the largest phase is the peak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise

HELP, OVERLAP, INDEPENDENT = "help", "overlap", "independent"
NAMES = (HELP, OVERLAP, INDEPENDENT)
SHARE = 0.01
"""Of what the script without knobs takes: an interaction below that is none."""
_THINGS = ("weights", "gradients", "states", "activations", "logits", "temporaries")
_PHASES = (
    ("weights", "states", "activations", "logits"),
    ("weights", "states", "gradients", "activations"),
    ("weights", "states", "gradients", "temporaries"),
)
JOIN = " + "


@dataclass(frozen=True)
class Knobs(Case):
    """A script with these knobs. drawn: tells cases with the same knobs apart."""

    names: tuple[str, ...]
    drawn: int = 0


def key_of(knobs: Iterable[str], names: tuple[str, ...] | list[str]) -> str:
    """How a set of knobs is called in a table, whatever their order: "bf16 + fused"; "" for none."""
    return JOIN.join(name for name in names if name in set(knobs))


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [some for size in range(len(names) + 1) for some in combinations(names, size)]


def draw_table(names: tuple[str, ...], rng: Random) -> dict[str, int]:
    """The peak of a script by the knobs that are turned, in MiB."""
    things = {thing: rng.randrange(2_000, 20_000) for thing in _THINGS}
    effects = {name: {thing: rng.randrange(30, 116) for thing in rng.sample(_THINGS, 2)} for name in names}

    def peak(turned: tuple[str, ...]) -> int:
        sizes = dict(things)
        for name in turned:
            for thing, percent in effects[name].items():
                sizes[thing] = sizes[thing] * percent // 100
        return max(sum(sizes[thing] for thing in phase) for phase in _PHASES)

    return {key_of(turned, names): peak(turned) for turned in subsets(names)}


def extras(table: Mapping[str, int], names: tuple[str, ...]) -> list[int]:
    """By pair, what the two save together beyond what they save alone."""
    base = table[""]
    return [table[a] + table[b] - base - table[key_of((a, b), names)] for a, b in combinations(names, 2)]


def tells(table: Mapping[str, int], names: tuple[str, ...]) -> bool:
    """Whether no interaction is near the border, and small ones are there beside large ones of both kinds."""
    shares = [extra / table[""] for extra in extras(table, names)]
    clear = all(not 0.7 < abs(share) / SHARE < 1.4 for share in shares)
    small = any(0 < abs(share) < SHARE for share in shares)
    kinds = (min(shares) < -SHARE, max(shares) > SHARE)
    return clear and (len(names) < 4 or (small and all(kinds)))


def a_script(case: Knobs, gen: torch.Generator) -> dict[str, Any]:
    """table: the peak by knobs that are turned, in MiB."""
    rng = Random(int(torch.randint(2**31, (), generator=gen)))
    while not tells(table := draw_table(case.names, rng), case.names):
        pass
    return {"table": table}


class Runs:
    """run(knobs) -> the peak. It notes what was run."""

    def __init__(self, table: Mapping[str, int], names: tuple[str, ...]) -> None:
        self._table, self._names, self.made = table, names, []

    def __call__(self, knobs: Iterable[str] = ()) -> int:
        """What the script takes with these knobs turned and no others, in MiB."""
        if isinstance(knobs, str):
            raise TypeError(f"run takes a set of knobs: run({{{knobs!r}}})")
        turned = set(knobs)
        if unknown := turned - set(self._names):
            raise ValueError(f"no knob is called {', '.join(sorted(map(repr, unknown)))}")
        key = key_of(turned, self._names)
        self.made.append(key)
        return self._table[key]


def by_pair(found: object, names: tuple[str, ...]) -> Any:
    """A pair's value under one name, in whichever order it was given; as it is where that cannot be."""
    if not isinstance(found, Mapping):
        return found
    return {key_of(pair, names) if isinstance(pair, tuple) else str(pair): value for pair, value in found.items()}


def drive(ans, case: Knobs, tree: dict, stage) -> Any:
    """What was found, and which runs were made for it."""
    run = Runs(tree["table"], case.names)
    found: Callable | Any = ans.ablation(run, list(case.names))
    if not isinstance(found, Mapping):
        return found
    pairs = {part: by_pair(found[part], case.names) for part in ("extra", "names") if part in found}
    return {**{str(part): value for part, value in found.items()}, **pairs, "runs": run.made}


ABLATION = Exercise(
    id="20-ablation",
    title="Each knob alone, in pairs, and last",
    points=4,
    minutes=30,
    difficulty=2,
    answers=(Answer("ablation"),),
    public=(
        Knobs(("bf16", "fused")),
        Knobs(("checkpoint", "chunked", "8-bit")),
        Knobs(("bf16", "fused", "checkpoint", "chunked")),
        Knobs(("in backward", "8-bit", "checkpoint", "bf16", "fused")),
    ),
    inputs=a_script,
    drive=drive,
)
