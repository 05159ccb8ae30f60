"""Lab 15: what two of its figures are drawn from, made with the student's own code.

`timeline`: a training step on the virtual clock, when what was computed and what travelled. `launch_twice`: a training
under torchrun, undisturbed and with a rank killed. Neither judges anything.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from labkit.exercises.lab15.ddp import LEARNING_RATE, Job, build, job_inputs
from labkit.exercises.lab15.launch import InterruptedTraining, kills_of, launch, training_inputs
from labkit.ranks import Cluster, Comm, Wire, simulate
from labkit.tree import plain

Span = tuple[float, float]
"""(start, end) in seconds."""
BYTES_S = 4e-3
"""What a block's gradients take on the wire within a node, however many ranks there are (for large n)."""
SLOWER_ACROSS = 1.5
N_RANKS_PER_NODE = 8


@dataclass(frozen=True)
class Timeline:
    """The first rank's step: spans of its blocks' backward passes, and of its all-reduces with their bytes.

    backward_s: what the backward pass would take alone. step_s: until the last gradient was there.
    """

    backward: tuple[Span, ...]
    reduces: tuple[tuple[float, float, int], ...]
    backward_s: float
    step_s: float


class _Computing:
    """A rank's communicator as its network has it, which notes when it computed."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self.spans: list[Span] = []

    def compute(self, seconds: float) -> None:
        start_s = self._comm.now_s
        self._comm.compute(seconds)
        self.spans.append((start_s, self._comm.now_s))


def network(case: Job, alpha_s: float) -> Cluster:
    """Nodes of 8 ranks. A message takes alpha_s seconds and what its bytes take; between nodes, 1.5 times both."""
    rate = 2 * case.block_bytes / BYTES_S
    slower = Wire(SLOWER_ACROSS * alpha_s, rate / SLOWER_ACROSS)
    return Cluster(ranks_per_node=N_RANKS_PER_NODE, within=Wire(alpha_s, rate), across=slower)


def timeline(
    ddp_class: Callable[..., Any], train_step: Callable[..., Any], case: Job, alpha_s: float = 1e-3
) -> Timeline:
    """Wrap a network of case.n_blocks blocks on every rank, and take one step of training.

    cap: case.cap_blocks. Time starts when the wrapper is there, so the broadcast does not count.
    """
    tree = job_inputs(case, torch.Generator().manual_seed(0))

    def rank(comm: Comm) -> tuple[float, list[Span], float]:
        computing = _Computing(comm)
        net = build(case, tree["ranks"][comm.rank], comm.rank, computing)
        optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
        ddp = ddp_class(net, comm, case.cap_bytes)
        comm.barrier()
        start_s = comm.now_s
        part = tree["ranks"][comm.rank]
        loss = F.cross_entropy(ddp(part["tokens"][0]), part["targets"][0])
        train_step(ddp, optimizer, loss, case.max_norm)
        return start_s, computing.spans, comm.now_s

    results, traffic = simulate(rank, case.n_ranks, network(case, alpha_s))
    start_s, spans, _ = results[0]
    after = [one for one in traffic.transfers if one.call == "all_reduce" and one.src == 0 and one.start_s >= start_s]
    a_call = 2 * (case.n_ranks - 1)
    groups = [after[i : i + a_call] for i in range(0, len(after), a_call)] if a_call else []
    reduces = tuple(
        (
            group[0].start_s - start_s,
            group[-1].end_s - start_s,
            sum(one.n_bytes for one in group) * case.n_ranks // a_call,
        )
        for group in groups
    )
    backward = tuple((begin_s - start_s, end_s - start_s) for begin_s, end_s in spans)
    return Timeline(backward, reduces, case.backward_s, max(end for *_, end in results) - start_s)


def scaling_of(
    ddp_class: Callable[..., Any], train_step: Callable[..., Any], case: Job
) -> tuple[dict[float, float], dict[str, dict[int, float]]]:
    """Seconds of a step by cap in blocks; and with 8 blocks and a tenth of the latency, by bucket and by ranks."""

    def step_s(changed: Job, alpha_s: float = 1e-3) -> float:
        return timeline(ddp_class, train_step, changed, alpha_s).step_s

    by_cap = {cap: step_s(replace(case, cap_blocks=cap)) for cap in (0.01, 0.5, 1, 2, 4, 13)}
    by_ranks = {
        f"a bucket for {name}": {
            n: step_s(replace(case, n_blocks=8, n_ranks=n, cap_blocks=cap), 1e-4) for n in (1, 2, 4, 8, 16)
        }
        for name, cap in {"a block": 1, "3 blocks": 3, "everything": 100}.items()
    }
    return by_cap, by_ranks


def first_host(nodelist: str) -> str:
    """The first host of a list as Slurm writes it: "node01" of "node[01-04,7],login1"."""
    first = re.match(r"([^,\[]|\[[^\]]*\])+", nodelist)
    return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", first[0]) if first else ""


SHOWN = InterruptedTraining(n_rows=256, batch=8, every=10, kill_steps=27)
"""The training of the notebook's figure, long enough to see."""


@dataclass(frozen=True)
class LaunchedTraining:
    """What `launch` returned for a case; kills: whether ranks were killed."""

    case: InterruptedTraining
    kills: bool
    found: Mapping[str, Any]

    @property
    def n_twice(self) -> int | None:
        """Steps after the checkpoints that the kills left; None where one left no checkpoint."""
        left = [one["step"] for one in self.found["left"]]
        if not self.kills or None in left or len(left) < len(self.case.killed_at):
            return None
        return sum(at - step for at, step in zip(self.case.killed_at, left))


def launch_twice(script: str, case: InterruptedTraining = SHOWN) -> tuple[LaunchedTraining, LaunchedTraining]:
    """The same training launched undisturbed, and with the case's kills, side by side."""
    tree = plain(training_inputs(case, torch.Generator().manual_seed(0)))

    def launched(kills: tuple[dict[str, int], ...]) -> LaunchedTraining:
        with tempfile.TemporaryDirectory() as folder:
            return LaunchedTraining(case, bool(kills), launch(script, tree, Path(folder), kills))

    with ThreadPoolExecutor(2) as both:
        undisturbed, killed = both.map(launched, ((), kills_of(case)))
    return undisturbed, killed
