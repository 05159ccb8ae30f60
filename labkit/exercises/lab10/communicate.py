"""Lab 10: what is asked, given and run for the classification of traces."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab10.traces import PROGRAMS, as_text, of_text, random_trace
from labkit.spec import Answer, Case, Exercise
from labkit.troubles import naming


@dataclass(frozen=True)
class Traces(Case):
    """programs: how many of each known one, in sizes and an order drawn at random; random: of random ones."""

    programs: int = 1
    random: int = 0
    most_threads: int = 4


def traces_of(case: Traces, gen: torch.Generator) -> dict[str, list[str]]:
    """The traces, and by which call a notebook makes each of them: 'PROGRAMS["with_barrier"](2, 3)'."""

    def size(least: int, most: int) -> int:
        return int(torch.randint(least, most + 1, (), generator=gen))

    found = []
    for name, program in PROGRAMS.items():
        for _ in range(case.programs):
            b, n = size(2, 3), size(2, case.most_threads)
            found.append((program(b, n), f'PROGRAMS["{name}"]({b}, {n})'))
    for _ in range(case.random):
        b, n, seed = size(1, 3), size(2, case.most_threads), size(0, 9999)
        found.append((random_trace(b, n, seed), f"random_trace({b}, {n}, seed={seed})"))
    order = torch.randperm(len(found), generator=gen).tolist()
    return {"traces": [as_text(found[at][0]) for at in order], "calls": [found[at][1] for at in order]}


def drive_classify(ans, case: Traces, tree: dict, stage) -> dict[str, list]:
    labels = []
    for trace, call in zip(tree["traces"], tree["calls"], strict=True):
        with naming(f"classify({call})"):
            labels.append(ans.classify(of_text(trace)))
    return {"labels": labels}


COMMUNICATE = Exercise(
    id="10-communicate",
    title="Right, race or deadlock",
    points=3,
    minutes=20,
    difficulty=3,
    answers=(Answer("classify"),),
    public=(Traces(), Traces(random=20)),
    inputs=traces_of,
    drive=drive_classify,
)
