"""Lab 16: hidden cases of what is kept and sent, and the programs that are counted for them.

The programs hold and send tensors without memory on the simulated network: what is right is what is counted there.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from grading.hidden import Hidden
from labkit.exercises.lab16.volume import METHODS, Volume
from labkit.ranks import Cluster, Comm, init_mesh, measure_ranks
from labkit.spec import CaseRun


def some(n: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """n elements that take no memory."""
    return torch.empty(n, dtype=dtype, device="meta")


def held(case: Volume) -> list[Tensor]:
    """What a rank keeps: weights and gradients in 16 bits; master weights and both moments of AdamW in 32."""
    n = {"ddp": 1, "hybrid": case.ranks_per_node}.get(case.method, case.n_ranks)
    cut_from = {"zero1": 2, "zero2": 1}.get(case.method, 0)
    parts = [some(case.n_params)] * 2 + [some(case.n_params, torch.float32)] * 3
    return [one[: len(one) // n] if place >= cut_from else one for place, one in enumerate(parts)]


def step(comm: Comm, case: Volume) -> None:
    """The calls of one step, all in 16 bits."""
    whole = some(case.n_params)
    if case.method == "ddp":
        comm.all_reduce(whole)
        return
    if case.method == "hybrid":
        mesh = init_mesh(comm, (case.n_nodes, case.ranks_per_node), ("replicas", "shards"))
        group, replicas = mesh["shards"], mesh["replicas"]
    else:
        group, replicas = comm, None
    shard = some(case.n_params // group.world_size)
    for micro in range(case.n_micro):
        if case.method in ("zero3", "hybrid"):
            group.all_gather_single(whole, shard)
            group.all_gather_single(whole, shard)
        if case.method != "zero1" or micro == 0:
            group.reduce_scatter_single(shard, whole)
    if replicas:
        replicas.all_reduce(shard)
    if case.method in ("zero1", "zero2"):
        group.all_gather_single(whole, shard)


def expect(run: CaseRun[Volume]) -> dict[str, Any]:
    """Counted. The configuration has no one right value: what came back stands for it, and a property judges it."""
    case = run.case
    cluster = Cluster(ranks_per_node=case.ranks_per_node)
    _, traffic = measure_ranks(lambda comm: step(comm, case), case.n_ranks, cluster=cluster)
    parts = held(case)
    n_shards = case.n_params // len(parts[-1])
    return {
        "mesh": [float(case.n_ranks // n_shards), float(n_shards)],
        "kept": float(sum(one.nbytes for one in parts)),
        "sent": float(max(traffic.bytes_sent)),
        "crossed": float(max(traffic.bytes_across, default=0)),
        "config": run.got["config"],
    }


def volume_cases(rng: random.Random) -> tuple[Volume, ...]:
    """Every method on several nodes, with accumulation and without, and on one node."""
    nodes, ranks = rng.randint(2, 3), rng.choice((3, 4, 5))
    # Neither a number of nodes or ranks, nor 2, as from 16 bits to 32: no mistake looks like one in another number.
    n_micro = rng.choice([n for n in range(3, 8) if n not in (nodes, ranks, nodes * ranks)])
    several = Volume("ddp", nodes * ranks * ranks * rng.randint(1_000, 900_000), nodes, ranks, n_micro)
    one_node = Volume("ddp", 5 * rng.randint(1_000, 900_000), 1, 5, 1, rng.randint(1, 9))
    lone = Volume("zero1", rng.randint(1_000, 9_000), 1, 1, 2)
    return (
        *(replace(several, method=method, micro_batch=rng.randint(1, 9)) for method in METHODS),
        *(replace(one_node, method=method) for method in METHODS),
        lone,
    )


VOLUME = Hidden("16-volume", volume_cases, expect)
