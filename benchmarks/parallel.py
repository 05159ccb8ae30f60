"""Parallel training: what every method of labs 14 to 16 sends beside its formula, and how long grading one takes.

Bytes are counted by the books that a grade goes by, of the course's own solutions, for n = 2 … 16 ranks that are
simulated; there is no time in them. A graded exercise is timed with its public and hidden cases, each rank a process
of its own behind the router. What that takes depends on the machine and on what else runs there, which "load" tells,
so the result holds ratios alone: to the first of GRADED, and the slowest repeat to the fastest.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from grading.isolation.plan import FULL
from grading.isolation.probe import try_tier
from grading.isolation.tiers import KERNEL, NONE
from grading.isolation.worker_tree import shared_worker_tree
from grading.supervisor import Job as Submission
from grading.supervisor import Sandbox, grade_job
from grading.terminal import say, table
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit import exercises
from labkit.exercises.lab14.group import Group
from labkit.exercises.lab15.ddp import Job, Net
from labkit.exercises.lab16.fsdp import Units
from labkit.exercises.lab16.shards import ShardedSteps
from labkit.observe import make_inputs, observe
from labkit.oracles.lab15.ddp_costs import bucket_bytes
from labkit.spec import Case
from tests.exercises.harness import answers_in, solution_of
from tests.ranks.algorithms import bytes_of

RANKS = range(2, 17)
GRADED = ("14-ring", "15-ddp", "16-zero1", "16-fsdp")
IMPORTS = """
from collections.abc import Callable, Sequence
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from labkit.ranks import Comm
"""


def of_algorithm(name: str) -> Callable[[Group], float]:
    """Of one all-reduce, from lab 14."""
    return lambda case: bytes_of(name, case.n_ranks, case.n_bytes)


def of_ddp(case: Job) -> float:
    """Everything is broadcast once; then in each step every bucket goes round the ring twice, less what stays."""
    net = Net(case, 0)
    start = sum(tensor.nbytes for tensor in (*net.parameters(), *net.buffers()))
    return (case.n_ranks - 1) * (start + case.n_steps * 2 * sum(bucket_bytes(case)))


def of_zero1(case: ShardedSteps) -> float:
    """A reduce-scatter and an all-gather in each step: what an all-reduce sends of all elements, filled up as one."""
    return case.n_steps * 2 * case.n_ranks * (case.n_ranks - 1) * 4 * -(-case.n_elements // case.n_ranks)


def of_zero2(case: ShardedSteps) -> float:
    """The same, of each parameter filled up for itself, since its gradient leaves as soon as it is there."""
    return case.n_steps * 2 * case.n_ranks * (case.n_ranks - 1) * 4 * case.cut_elements


def of_fsdp(case: Units) -> float:
    """Two all-gathers and a reduce-scatter of every unit in each step: 1.5 times as much."""
    return case.n_steps * 3 * case.n_ranks * (case.n_ranks - 1) * 4 * sum(case.shard_sizes)


@dataclass(frozen=True)
class Method:
    """An exercise, the case of it for n ranks, and the bytes that all ranks together send, by its formula."""

    exercise: str
    case: Callable[[int], Case]
    formula: Callable[[Any], float]


SHAPES = ((24, 30), (61,))
METHODS = {
    "all-reduce, naive": Method("14-naive", lambda n: Group(n, (48 * n,)), of_algorithm("naive")),
    "all-reduce, tree": Method("14-tree", lambda n: Group(n, (48 * n,)), of_algorithm("tree")),
    "all-reduce, butterfly": Method("14-butterfly", lambda n: Group(n, (48 * n,)), of_algorithm("butterfly")),
    "all-reduce, ring": Method("14-ring", lambda n: Group(n, (48 * n,)), of_algorithm("ring")),
    "DDP": Method("15-ddp", lambda n: Job(n, n_blocks=3), of_ddp),
    "ZeRO-1": Method("16-zero1", lambda n: ShardedSteps(n, SHAPES, n_steps=2), of_zero1),
    "ZeRO-2": Method("16-zero2", lambda n: ShardedSteps(n, SHAPES, n_steps=2), of_zero2),
    "ZeRO-3 (FSDP)": Method("16-fsdp", lambda n: Units(n, width=8), of_fsdp),
}


def main(argv: list[str]) -> dict:
    """Prints the tables and returns them."""
    parser = argparse.ArgumentParser(prog="benchmarks parallel", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="times that an exercise is graded")
    args = parser.parse_args(argv)
    load_before = os.getloadavg()[0]
    found = {"volume": volume(), "graded": graded(args.repeats)}
    load = {"before": round(load_before, 1), "after": round(os.getloadavg()[0], 1), "cores": os.cpu_count()}
    return {"load": load, **found}


def volume() -> list[dict]:
    """Bytes of each method as counted, beside its formula."""
    rows = []
    for name, method in METHODS.items():
        exercise = exercises.find(method.exercise)
        names = [answer.name for answer in exercise.answers]
        found = answers_in(method.exercise, solution_of(method.exercise))
        answers = SimpleNamespace(**{one: found[one] for one in names})
        for n in RANKS:
            case = method.case(n)
            run = observe(exercise, answers, case, make_inputs(exercise, case, n), wall_s=120.0)
            if run.trouble:
                raise RuntimeError(f"{method.exercise} on {n} ranks: {run.trouble.text}")
            rows.append(
                {
                    "method": name,
                    "ranks": n,
                    "counted": int(run.measured["bytes_total"]),
                    "formula": int(method.formula(case)),
                }
            )
    wrong = [row for row in rows if row["counted"] != row["formula"]]
    print(f"volume: {len(rows)} counts, {len(wrong)} differ from their formula")
    at = {name: [row for row in rows if row["method"] == name] for name in METHODS}
    columns = [n for n in RANKS if n in (2, 4, 8, 16)]
    texts = [(name, *(f"{row['counted']:,}" for row in mine if row["ranks"] in columns)) for name, mine in at.items()]
    say(*table(("bytes of all ranks", *(f"n = {n}" for n in columns)), texts))
    return rows


def graded(repeats: int) -> list[dict]:
    """How long public and hidden cases of a right answer take by the wall clock, on processes that are warm."""
    rows, texts = [], []
    first_s = 0.0
    with _server() as server:
        for name in GRADED:
            steps = _steps(name)
            seconds = []
            for _ in range(repeats):
                began = time.perf_counter()
                result = grade_job(server, Submission(f"{name[:2]}_lab", "ada", "1", steps, (), (), b"key"))
                seconds.append(time.perf_counter() - began)
                outcome = result.exercises[name].outcome
                if outcome != "passed":
                    raise RuntimeError(f"{name} is {outcome}, so there is nothing to measure")
            most = max(case.n_ranks for case in exercises.find(name).public)
            first_s = first_s or min(seconds)
            times = {"times_first": min(seconds) / first_s, "worst_to_best": max(seconds) / min(seconds)}
            rows.append({"exercise": name, "most_ranks": most, **{key: round(one, 2) for key, one in times.items()}})
            texts.append((name, most, f"{min(seconds):.2f}", f"{max(seconds):.2f}"))
    say(*table(("graded", "most public ranks", "best s", "worst s"), texts))
    return rows


@contextmanager
def _server() -> Iterator[Sandbox]:
    """A forking process with what the grader has loaded for labs that have optimizers."""
    with Sandbox(KERNEL if try_tier(KERNEL).works else NONE, shared_worker_tree(), preload=FULL) as server:
        yield server


def _steps(name: str) -> tuple[RunCode | ServeExercise, ...]:
    return RunCode("setup", IMPORTS), RunCode(name, solution_of(name)), ServeExercise(f"{name}-check", name)
