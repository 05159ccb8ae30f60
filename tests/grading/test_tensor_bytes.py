"""A tensor that one rank sends another arrives as it was, in every dtype that may be sent."""

from __future__ import annotations

import pytest
import torch

from grading.worker.wire.tensor_bytes import pack, unpack


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.5),
        torch.zeros(0, 3),
        torch.arange(12).reshape(3, 4).T,
        torch.ones(2, 3, dtype=torch.complex128).conj(),
        torch.tensor([True, False]),
        torch.randn(5).to(torch.float8_e4m3fn),
        torch.randn(3, 1).expand(3, 4),
        torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16)),
    ],
    ids=lambda tensor: f"{tensor.dtype} {tuple(tensor.shape)}",
)
def test_a_tensor_arrives_as_it_was(tensor: torch.Tensor) -> None:
    back = unpack(pack(tensor))
    assert (back.shape, back.dtype) == (tensor.shape, tensor.dtype)
    assert pack(back)["bytes"].tolist() == pack(tensor)["bytes"].tolist()


def test_a_tensor_of_another_dtype_cannot_be_sent() -> None:
    with pytest.raises(TypeError, match="ranks cannot send one another tensors of dtype float8_e5m2fnuz"):
        pack(torch.ones(2).to(torch.float8_e5m2fnuz))
