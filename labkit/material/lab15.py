"""Lab 15: what two of its figures are drawn from, made with the student's own code.

`timeline`: a training step on the virtual clock, when what was computed and what travelled. `launch_twice`: a training
under torchrun, undisturbed and with a rank killed. Neither judges anything.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from labkit.exercises.lab15.ddp import BLOCK_S, LEARNING_RATE, Job, build, job_inputs
from labkit.exercises.lab15.launch import InterruptedTraining, kills_of, launch, training_inputs
from labkit.ranks import Cluster, Comm, Wire, simulate
from labkit.tree import plain

Span = tuple[float, float]
"""(start, end) in seconds."""
BYTES_S = 4.0
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


def network(case: Job, alpha_s: float) -> Cluster:
    """Nodes of 8 ranks. A message takes alpha_s seconds and what its bytes take; between nodes, 1.5 times both."""
    rate = 2 * case.block_bytes / BYTES_S
    slower = Wire(SLOWER_ACROSS * alpha_s, rate / SLOWER_ACROSS)
    return Cluster(ranks_per_node=N_RANKS_PER_NODE, within=Wire(alpha_s, rate), across=slower)


def timeline(
    ddp_class: Callable[..., Any], train_step: Callable[..., Any], case: Job, alpha_s: float = 1.0
) -> Timeline:
    """Wrap a network of case.n_blocks blocks on every rank, and take one step of training.

    cap: case.cap_blocks. Time starts when the wrapper is there, so the broadcast does not count.
    """
    tree = job_inputs(case, torch.Generator().manual_seed(0))

    def rank(comm: Comm) -> tuple[float, list[float], int]:
        net = build(case, tree["ranks"][comm.rank], comm.rank, comm)
        optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
        ddp = ddp_class(net, comm, case.cap_bytes)
        comm.barrier()
        start_s, ends_s = comm.now_s, []
        for block in net.blocks:
            block.weight.register_post_accumulate_grad_hook(lambda _: ends_s.append(comm.now_s))
        part = tree["ranks"][comm.rank]
        loss = F.cross_entropy(ddp(part["tokens"][0]), part["targets"][0])
        train_step(ddp, optimizer, loss, case.max_norm)
        return start_s, ends_s, comm.now_s

    results, traffic = simulate(rank, case.n_ranks, network(case, alpha_s))
    start_s, ends_s, _ = results[0]
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
    backward = tuple((end_s - BLOCK_S - start_s, end_s - start_s) for end_s in ends_s)
    return Timeline(backward, reduces, BLOCK_S * case.n_layers, max(end for *_, end in results) - start_s)


SHOWN = InterruptedTraining(n_rows=256, batch=8, every=10, kill_steps=27)
"""The training of the notebook's figure, long enough to see."""


@dataclass(frozen=True)
class LaunchedTraining:
    """What `launch` returned for a case; kills: whether ranks were killed."""

    case: InterruptedTraining
    kills: bool
    found: Mapping[str, Any]


def launch_twice(script: str, case: InterruptedTraining = SHOWN) -> tuple[LaunchedTraining, LaunchedTraining]:
    """The same training launched undisturbed, and with the case's kills, side by side."""
    tree = plain(training_inputs(case, torch.Generator().manual_seed(0)))

    def launched(kills: tuple[dict[str, int], ...]) -> LaunchedTraining:
        with tempfile.TemporaryDirectory() as folder:
            return LaunchedTraining(case, bool(kills), launch(script, tree, Path(folder), kills))

    with ThreadPoolExecutor(2) as both:
        undisturbed, killed = both.map(launched, ((), kills_of(case)))
    return undisturbed, killed
