"""Lab 15: what a launcher tells a process about its place among the ranks, in environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise

SPEAK_FOR_THEMSELVES = ("torchrun",)
"""Launchers that set MASTER_ADDR and MASTER_PORT. With the others the user exports them, or the job tells."""


@dataclass(frozen=True)
class Launched(Case):
    """A process of a job on n_nodes nodes with per_node ranks on each.

    launcher: "torchrun", "openmpi", "hydra" (MPICH and Intel MPI) or "slurm". around: a launcher that started this one,
    once a node. exported: the user set MASTER_ADDR and MASTER_PORT. pmi: Slurm sets PMI_RANK and PMI_SIZE as well, for
    programs of MPICH (srun --mpi=pmi2). unset: variables that are missing.
    """

    launcher: str
    rank: int = 6
    per_node: int = 4
    n_nodes: int = 2
    nodelist: str = "node[01-02]"
    first_host: str = "node01"
    job_id: int = 481516
    around: str | None = None
    exported: bool = False
    pmi: bool = False
    unset: tuple[str, ...] = ()

    @property
    def local_rank(self) -> int:
        """The place on the own node; nodes are filled in order."""
        return self.rank % self.per_node

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.n_nodes * self.per_node


PLACE = {
    "torchrun": ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    "openmpi": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    "hydra": ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    "slurm": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
}
"""The variables of rank, local rank and world size."""
EXPORTED_ADDR, EXPORTED_PORT = "head.cluster", 23456
DECOY = 77
"""What the process that runs the check has in every one of these variables, for an answer that looks there."""
DECOYS = dict.fromkeys((*sum(PLACE.values(), ()), "MASTER_ADDR", "MASTER_PORT"), str(DECOY))


def variables(case: Launched) -> dict[str, str]:
    """The environment of the process, with a few variables beside that tempt."""
    node = case.rank // case.per_node
    env = {"PATH": "/usr/bin:/bin", "HOSTNAME": f"host-{node}"}
    if "slurm" in (case.launcher, case.around):
        env |= {
            "SLURM_JOB_ID": str(case.job_id),
            "SLURM_JOB_NODELIST": case.nodelist,
            "SLURM_NNODES": str(case.n_nodes),
            "SLURM_NODEID": str(node),
            "SLURM_NTASKS_PER_NODE": str(case.per_node),
        }
    if case.around:
        # One process a node: what it says of itself is the node's number.
        env |= dict(zip(PLACE[case.around], (str(node), "0", str(case.n_nodes)), strict=True))
    numbers = (case.rank, case.local_rank, case.world_size)
    env |= dict(zip(PLACE[case.launcher], map(str, numbers), strict=True))
    if case.launcher == "torchrun":
        env |= {"GROUP_RANK": str(node), "LOCAL_WORLD_SIZE": str(case.per_node)}
    if case.launcher == "openmpi":
        env |= {"OMPI_COMM_WORLD_LOCAL_SIZE": str(case.per_node), "OMPI_COMM_WORLD_NODE_RANK": str(case.local_rank)}
    if case.launcher == "hydra":
        env |= {"MPI_LOCALNRANKS": str(case.per_node)}
    if case.pmi:
        env |= {"PMI_RANK": str(case.rank), "PMI_SIZE": str(case.world_size)}
    if case.launcher in SPEAK_FOR_THEMSELVES or case.exported:
        env |= {"MASTER_ADDR": EXPORTED_ADDR, "MASTER_PORT": str(EXPORTED_PORT)}
    return {name: value for name, value in env.items() if name not in case.unset}


def make_inputs(case: Launched, gen: torch.Generator) -> dict[str, Any]:
    """env: names and values."""
    return {"env": variables(case)}


@contextmanager
def decoys() -> Iterator[None]:
    """This process has the decoys in its own environment."""
    before = {name: os.environ.get(name) for name in DECOYS}
    os.environ.update(DECOYS)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def drive(ans, case: Launched, tree: dict, stage) -> dict[str, Any]:
    """place: what was read from the environment. error, message: which kind of error came instead."""
    try:
        with decoys():
            place = ans.read_environment(tree["env"])
    except (KeyError, ValueError) as error:
        kind = "KeyError" if isinstance(error, KeyError) else "ValueError"
        return {"place": None, "error": kind, "message": str(error)}
    return {"place": place, "error": None, "message": ""}


ENV = Exercise(
    id="15-env",
    title="Which rank am I?",
    points=0.4,
    optional=True,
    minutes=25,
    difficulty=2,
    answers=(Answer("read_environment"),),
    public=(
        Launched("torchrun"),
        Launched("slurm"),
        Launched("slurm", rank=9, per_node=8, nodelist="gpu7,gpu[11-12]", first_host="gpu7", job_id=90007),
        Launched("slurm", rank=3, per_node=2, nodelist="a100-[08,10-12]-ib,login1", first_host="a100-08-ib"),
        Launched("slurm", exported=True),
        Launched("slurm", exported=True, unset=("MASTER_PORT",)),
        Launched("slurm", pmi=True),
        Launched("openmpi", exported=True),
        Launched("hydra", exported=True),
        Launched("torchrun", around="slurm"),
        Launched("openmpi", around="slurm"),
        Launched("openmpi", exported=True, around="hydra"),
        Launched("hydra", exported=True, around="slurm"),
        Launched("slurm", unset=("SLURM_LOCALID",)),
        Launched("torchrun", rank=0, unset=("WORLD_SIZE", "MASTER_PORT")),
        Launched("openmpi"),
        Launched("slurm", unset=("SLURM_JOB_NODELIST",)),
        Launched("torchrun", unset=(*PLACE["torchrun"], "MASTER_ADDR", "MASTER_PORT")),
    ),
    inputs=make_inputs,
    drive=drive,
)
