"""Programs of several ranks, as cells: run behind the router, run simulated, and how the two observations differ."""

from __future__ import annotations

import linecache
from types import SimpleNamespace

from grading.supervisor import Sandbox
from grading.supervisor.cases import CaseInputs, CaseSet
from grading.supervisor.ranks.run import run_in_ranks
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.observe import make_inputs, observe
from labkit.spec import Observation
from labkit.tree import same
from tests.grading.lab98.exercises import PROGRAM, Ranks

IMPORTS = "import torch\nfrom labkit.ranks import CommError\n"


def program(body: str) -> str:
    """A cell whose answer has this body; comm, x, rank and n are there."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"{IMPORTS}def program(comm, x):\n    rank, n = comm.rank, comm.world_size\n{lines}"


def simulated(source: str, case: Ranks) -> Observation:
    # As a notebook's cell, so that the line of an error is found.
    name = "<ipython-input-98>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict = {}
    exec(compile(source, name, "exec"), namespace)
    answers = SimpleNamespace(program=namespace["program"])
    return observe(PROGRAM, answers, case, make_inputs(PROGRAM, case, 1))


def routed(server: Sandbox, source: str, *cases: Ranks) -> list[Observation]:
    steps = [
        RunCode("a", source),
        ServeExercise("b", PROGRAM.id),
    ]
    case_set = CaseSet(tuple(CaseInputs(case, make_inputs(PROGRAM, case, 1)) for case in cases))
    return run_in_ranks(server, steps, PROGRAM, case_set).runs


def differences(one: Observation, other: Observation) -> list[str]:
    parts = [name for name in ("tree", "got", "back") if not same(getattr(one, name), getattr(other, name))]
    return parts + [
        name for name in ("measured", "held", "trouble", "moments") if getattr(one, name) != getattr(other, name)
    ]
