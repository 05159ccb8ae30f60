"""Ranks: several copies of one function that exchange messages, simulated in this process or as processes of their own.

Simulated ranks are counted exactly and are the same on every machine; real ones run on gloo, or on NCCL with GPUs.
"""

from labkit.ranks.cluster import UNIT, Cluster, Wire
from labkit.ranks.comm import Comm, Work
from labkit.ranks.errors import CommError, RankFailed, RanksHung, RemoteError
from labkit.ranks.mesh import Mesh, init_mesh
from labkit.ranks.run import BACKENDS, measure_ranks, run_ranks
from labkit.ranks.simulated import simulate
from labkit.ranks.traffic import Moment, Traffic, Transfer

__all__ = [
    "BACKENDS",
    "UNIT",
    "Cluster",
    "Comm",
    "CommError",
    "Mesh",
    "Moment",
    "RankFailed",
    "RanksHung",
    "RemoteError",
    "Traffic",
    "Transfer",
    "Wire",
    "Work",
    "init_mesh",
    "measure_ranks",
    "run_ranks",
    "simulate",
]
