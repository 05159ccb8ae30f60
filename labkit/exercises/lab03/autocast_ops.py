"""What the function names in a block of lab 03 stand for, as PyTorch calls on matrices of SIDE x SIDE.

Only dtypes are of interest, so every result is brought back to that one shape. No rule of autocast stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

SIDE = 4


class Op(NamedTuple):
    """result = function(*inputs): names of earlier results or of given tensors."""

    result: str
    function: str
    inputs: tuple[str, ...]


def row(matrix: Tensor) -> Tensor:
    """SIDE elements of it. Without indexing, for which a fake CUDA tensor asks for a real device."""
    return matrix.reshape(-1).narrow(0, 0, SIDE)


CALLS: dict[str, Callable[..., Tensor]] = {
    "linear": lambda x, weight: F.linear(x, weight),
    "matmul": lambda a, b: torch.matmul(a, b),
    "conv1d": lambda x, weight: F.conv1d(x.unsqueeze(0), weight.unsqueeze(-1)),
    "attention": lambda q, k, v: F.scaled_dot_product_attention(*(one.reshape(1, 1, SIDE, SIDE) for one in (q, k, v))),
    "layer_norm": lambda x, weight, bias: F.layer_norm(x, (SIDE,), row(weight), row(bias)),
    "group_norm": lambda x: F.group_norm(x.unsqueeze(0), 2),
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "cross_entropy": lambda logits: F.cross_entropy(logits, torch.zeros(SIDE, dtype=torch.long, device=logits.device)),
    "mse_loss": lambda a, b: F.mse_loss(a, b),
    "sum": lambda x: x.sum(),
    "cumsum": lambda x: x.cumsum(0),
    "norm": lambda x: x.norm(),
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "pow": lambda x: x.pow(2),
    "rsqrt": lambda x: x.rsqrt(),
    "softplus": lambda x: F.softplus(x),
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "cat": lambda a, b: torch.cat([a, b]),
    "where": lambda a, b: torch.where(a > 0, a, b),
    "relu": lambda x: F.relu(x),
    "gelu": lambda x: F.gelu(x),
    "silu": lambda x: F.silu(x),
    "sigmoid": lambda x: x.sigmoid(),
    "tanh": lambda x: x.tanh(),
    "sqrt": lambda x: x.sqrt(),
    "mean": lambda x: x.mean(),
    "amax": lambda x: x.amax(),
    "dropout": lambda x: F.dropout(x, 0.1),
    "transpose": lambda x: x.t(),
    "embedding": lambda index, table: F.embedding(row(index), table),
    "add_": lambda a, b: a.clone().add_(b),
    "float": lambda x: x.float(),
}


def call(function: str, inputs: Iterable[Tensor]) -> Tensor:
    """The result of one op, as a SIDE x SIDE matrix again."""
    out = CALLS[function](*inputs).reshape(-1)
    return (out.narrow(0, 0, SIDE**2) if out.numel() >= SIDE**2 else out.narrow(0, 0, 1).expand(SIDE**2)).reshape(
        SIDE, SIDE
    )
