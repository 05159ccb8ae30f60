"""Lab 17: hidden runs with planted bugs. What is planted is drawn with the inputs, and read off the gradients here."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from grading.hidden import Hidden
from labkit.exercises.lab17.compose_bugs import CLIPPED, REPLICAS, TIES, Runs
from labkit.exercises.lab17.planted import EVERYWHERE, NONE
from labkit.spec import CaseRun

NEAR = 1e-8
"""Of float64 gradients: what is the same agrees to 1e-12, and what is not differs in the first digits."""


def near(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).norm() <= NEAR * b.norm())


def planted(run: dict, groups: dict[str, list[list[int]]]) -> tuple[str, str]:
    """(kind, parameter) of the bug whose trace the gradients have. ValueError where they have none of the traces."""
    refs, gots, tensor = run["reference"], run["ranks"], groups["tensor"]
    n_tensor, n_data = len(tensor[0]), len(groups["data"][0])
    names = list(refs[0])
    bad = [name for name in names if not all(near(got[name], ref[name]) for ref, got in zip(refs, gots))]
    if not bad:
        return NONE, NONE
    if len(bad) == len(names):
        norms = [[torch.cat([one.flatten() for one in each.values()]).norm() for each in all_] for all_ in (gots, refs)]
        factors = [float(got / ref) for got, ref in zip(*norms, strict=True)]
        pairs = zip(refs, gots, factors, strict=True)
        if not all(near(got[name], factor * ref[name]) for ref, got, factor in pairs for name in names):
            return "one seed", EVERYWHERE
        for factor, kind in ((1 / n_data, "averaged twice"), (1 / n_tensor, "wrong world size")):
            if all(abs(one / factor - 1) < NEAR for one in factors):
                return kind, EVERYWHERE
        return CLIPPED, EVERYWHERE
    if len(bad) == 2 and all(near(got[bad[0]] + got[bad[1]], ref[bad[0]]) for ref, got in zip(refs, gots)):
        return TIES, bad[0]
    if len(bad) > 1:
        return "backward not reduced", bad[-1]
    (name,) = bad
    ref, got = ([each[name] for each in all_] for all_ in (refs, gots))
    if all(near(one, n_tensor * right) for one, right in zip(got, ref, strict=True)):
        return "on every rank", name
    means = {rank: sum(ref[other] for other in group) / n_tensor for group in tensor for rank in group}
    if all(near(got[rank], mean) for rank, mean in means.items()):
        return "wrong group", name
    for group in tensor:
        for rank in group:
            alike = [other for other in group if torch.equal(ref[other], ref[rank])]
            if not near(sum(got[other] for other in alike), ref[rank]):
                raise ValueError(f"{name} has none of the traces")
    return ("not summed" if len(alike) == n_tensor else REPLICAS), name


def expected(run: CaseRun[Runs]) -> dict[str, dict[str, str]]:
    found = (planted(one, run.tree["groups"]) for one in run.tree["runs"])
    return {f"run {n}": {"kind": kind, "parameter": parameter} for n, (kind, parameter) in enumerate(found, 1)}


def bug_cases(rng: random.Random) -> tuple[Runs, ...]:
    """Every kind once where several ranks have the same key head, and once more, but for that, where none do."""
    tensor, data = rng.choice(((2, 3), (3, 2)))
    return (Runs(4, 2, 2), Runs(tensor, data, tensor))


COMPOSE_BUGS = Hidden("17-compose-bugs", bug_cases, expect=expected)
