"""What PyTorch itself says of sharding and pipelines, as plain data: for oracles, and to compare with in a notebook.

`fully_shard` on ranks that are not there (`sharded`), distributed tensors with the values of all ranks in one process
(`local`), the groups of a grid of ranks (`meshes`), the order of every pipeline schedule (`schedules`). All rest on
names that PyTorch keeps private; they are in `private` and nowhere else. Nothing here moves a byte between processes.
"""

from labkit.torch_oracles.local import on_all_ranks
from labkit.torch_oracles.meshes import groups_of_mesh
from labkit.torch_oracles.private import TRIED, missing_names
from labkit.torch_oracles.schedules import SCHEDULES, schedule_ops
from labkit.torch_oracles.sharded import Collective, collectives_of_fully_shard

__all__ = [
    "SCHEDULES",
    "TRIED",
    "Collective",
    "collectives_of_fully_shard",
    "groups_of_mesh",
    "missing_names",
    "on_all_ranks",
    "schedule_ops",
]
