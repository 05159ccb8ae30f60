"""The groups of a grid: those that each rank's own `DeviceMesh` has, and nothing is left behind in the process."""

from __future__ import annotations

import sys

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from labkit.torch_oracles import groups_of_mesh
from labkit.torch_oracles.private import private

SHAPE, NAMES = (2, 3, 2), ("pipeline", "data", "tensor")


def test_every_rank_has_the_group_that_holds_it() -> None:
    groups = groups_of_mesh(SHAPE, NAMES)
    assert {name: len(found) for name, found in groups.items()} == {"pipeline": 6, "data": 4, "tensor": 6}
    for rank in range(12):
        dist.init_process_group("fake", store=private("FakeStore")(), rank=rank, world_size=12)
        try:
            mesh = init_device_mesh("cpu", SHAPE, mesh_dim_names=NAMES)
            for name in NAMES:
                assert mesh[name].mesh.tolist() in groups[name] and rank in mesh[name].mesh.tolist()
        finally:
            dist.destroy_process_group()


def test_what_is_returned_is_the_callers_own() -> None:
    groups_of_mesh(SHAPE, NAMES)["data"].clear()
    assert len(groups_of_mesh(SHAPE, NAMES)["data"]) == 4


def test_tracebacks_look_as_before() -> None:
    before = sys.excepthook
    groups_of_mesh((5,), ("data",))
    assert sys.excepthook is before and not dist.is_initialized()
