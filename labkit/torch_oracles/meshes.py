"""The groups of a grid of ranks, as `init_device_mesh` makes them; none of the ranks is there.

Which grid is the right one for a cluster is not said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from torch.distributed.device_mesh import init_device_mesh

from labkit.torch_oracles.private import fake_ranks, private


def groups_of_mesh(shape: Sequence[int], names: Sequence[str]) -> dict[str, list[list[int]]]:
    """By the name of a dimension its groups, in order of their first ranks.

    groups_of_mesh((2, 2), ("dp", "tp")) == {"dp": [[0, 2], [1, 3]], "tp": [[0, 1], [2, 3]]}

    Raises RuntimeError in a process that has a process group already.
    """
    return {name: [list(group) for group in groups] for name, groups in _groups(tuple(shape), tuple(names))}


@cache
def _groups(shape: tuple[int, ...], names: tuple[str, ...]) -> tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]:
    with fake_ranks(math.prod(shape)):
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
        lines = {name: private("_get_all_submeshes")(mesh, name) for name in names}
        return tuple((name, tuple(sorted(tuple(line.mesh.tolist()) for line in lines[name]))) for name in names)
