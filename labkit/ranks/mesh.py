"""Ranks as a grid, each row and column of it a group: `torch.distributed.device_mesh` on a communicator.

It makes groups and numbers, and sends nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from labkit.ranks.comm import Comm
from labkit.ranks.errors import CommError


class Mesh:
    """One rank's place in a grid: `mesh["tp"]` is the communicator of the ranks that differ from it in that dimension
    alone, as `mesh.get_group("tp")` is for `torch.distributed`.
    """

    def __init__(self, comm: Comm, shape: tuple[int, ...], names: tuple[str, ...]) -> None:
        self.shape = shape
        self.mesh_dim_names = names
        self.mesh = torch.arange(comm.world_size).reshape(shape)
        """The grid of ranks, row after row."""
        self._at = tuple((self.mesh == comm.rank).nonzero()[0].tolist())
        self._groups = {}
        for dim, name in enumerate(names):
            line = self.mesh[tuple(slice(None) if other == dim else at for other, at in enumerate(self._at))]
            self._groups[name] = comm.new_group(line.tolist())

    def __getitem__(self, name: str) -> Comm:
        if name not in self._groups:
            raise CommError(f"the mesh has no dimension {name!r}: it has {', '.join(self.mesh_dim_names)}")
        return self._groups[name]

    def get_coordinate(self) -> tuple[int, ...]:
        """Where this rank stands, a number for each dimension."""
        return self._at

    def get_local_rank(self, name: str) -> int:
        """Its number in that dimension."""
        return self[name].rank

    def size(self, name: str) -> int:
        """How many ranks there are in that dimension."""
        return self[name].world_size


def init_mesh(comm: Comm, mesh_shape: Sequence[int], mesh_dim_names: Sequence[str]) -> Mesh:
    """The ranks of a communicator as a grid, the last dimension running fastest; every rank calls it.

    init_mesh(comm, (2, 4), ("dp", "tp")): ranks 0 to 3 are a "tp" group, ranks 0 and 4 a "dp" group. The names are
    those of `torch.distributed.device_mesh.init_device_mesh`. Raises CommError where the shape does not fit.
    """
    shape, names = tuple(mesh_shape), tuple(mesh_dim_names)
    if math.prod(shape) != comm.world_size or min(shape, default=0) < 1:
        raise CommError(f"a mesh of shape {shape} has {math.prod(shape)} places, and there are {comm.world_size} ranks")
    if len(names) != len(shape) or len(set(names)) != len(names):
        raise CommError(f"a mesh of shape {shape} needs {len(shape)} different names, not {names}")
    return Mesh(comm, shape, names)
