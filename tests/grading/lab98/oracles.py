"""Lab 98, second half."""

from __future__ import annotations

import torch

from labkit.compare import came_by, inputs_untouched
from labkit.spec import Budget, Oracle, Tolerance
from tests.grading.lab98.exercises import N_LAYERS


def _sums(run):
    total = torch.stack([part["x"] for part in run.tree["ranks"]]).sum(0)
    return {"ranks": [{"out": total} for _ in range(run.case.n)]}


PROGRAM = Oracle(id="98-program")
SUM = Oracle(
    id="98-sum",
    expect=_sums,
    judge=(inputs_untouched,),
    tolerance=Tolerance(rtol=1e-4, atol=1e-5),
    budgets=(
        Budget("bytes_total", lambda run: 2 * (run.case.n - 1) * 4 * run.case.size, "Send less."),
        Budget("rounds", lambda run: 2 * (run.case.n - 1), "Take fewer rounds."),
    ),
)
ROOM = Oracle(
    id="98-room",
    expect=lambda run: {"ranks": [{"out": torch.stack([p["x"].max() for p in run.tree["ranks"]]).max()}] * run.case.n},
    budgets=(Budget("peak_bytes", lambda run: run.case.size // 2 + 4096, "Take it in blocks."),),
)


def _layer_sums(run):
    n, size = run.case.n, run.case.size
    sums = [float(size * sum(1 + rank + layer for rank in range(n))) for layer in range(N_LAYERS)]
    return {"ranks": [{"sums": sums}] * n}


def _shards(run):
    return N_LAYERS * 4 * run.case.size


LAYERS = Oracle(
    id="98-layers",
    expect=_layer_sums,
    tolerance=Tolerance(rtol=1e-5),
    judge=(came_by(lambda run: [("before", 0), *[("between layers", n + 1) for n in range(N_LAYERS)]]),),
    budgets=(
        Budget("held_bytes", lambda run: _shards(run) + 1024, "Free what was gathered.", at="between layers"),
        Budget("peak_bytes", lambda run: _shards(run) + 4 * run.case.n * run.case.size + 1024, "Gather one at a time."),
    ),
)
