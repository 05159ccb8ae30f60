"""Distributed tensors of all ranks in one process: their parts are those that one tensor is cut into."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

from labkit.torch_oracles import on_all_ranks


@pytest.mark.parametrize(("size", "n"), [(10, 4), (8, 4), (3, 4), (1, 1)])
def test_shards_are_the_chunks_of_the_whole(size: int, n: int) -> None:
    whole = torch.arange(float(size))
    parts = on_all_ranks(lambda: distribute_tensor(whole, init_device_mesh("cpu", (n,)), [Shard(0)]), n)
    chunks = whole.chunk(n)
    assert [part.tolist() for part in parts] == [*(one.tolist() for one in chunks), *[[]] * (n - len(chunks))]


def test_columns_then_rows_end_in_a_sum_over_the_ranks() -> None:
    x, first, second = torch.randn(3, 4), torch.randn(4, 8), torch.randn(8, 5)

    def program() -> dict[str, DTensor]:
        mesh = init_device_mesh("cpu", (2,))
        hidden = distribute_tensor(x, mesh, [Replicate()]) @ distribute_tensor(first, mesh, [Shard(1)])
        out = hidden @ distribute_tensor(second, mesh, [Shard(0)])
        assert out.placements == (Partial(),)
        return {"hidden": hidden, "part": out, "whole": out.redistribute(placements=[Replicate()])}

    left, right = on_all_ranks(program, 2)
    assert torch.equal(left["hidden"], x @ first[:, :4]) and torch.equal(right["hidden"], x @ first[:, 4:])
    torch.testing.assert_close(left["part"] + right["part"], x @ first @ second)
    assert torch.equal(left["whole"], right["whole"])
    torch.testing.assert_close(left["whole"], x @ first @ second)


def test_what_is_no_tensor_is_every_ranks() -> None:
    assert on_all_ranks(lambda: [1, ("two", None)], 2) == [[1, ["two", None]]] * 2
    assert not dist.is_initialized()
