"""Lab 01: the FLOPs of a training iteration, counted by PyTorch on a layer of GPT-2's shape without storage.

What an answer makes of them is not looked at here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode


def _meta(*shape: int) -> torch.Tensor:
    return torch.empty(shape, device="meta", requires_grad=True)


def _counted(run: Callable[[], torch.Tensor], backward: bool) -> int:
    """FLOPs of matrix products, forward only or forward and backward."""
    with FlopCounterMode(display=False) as counter:
        out = run()
        if backward:
            out.sum().backward()
    return counter.get_total_flops()


@cache
def layer_flops(batch: int, seq: int, hidden: int, backward: bool) -> int:
    """A layer of GPT-2's shape: eager attention, four times as wide between the two linear layers behind it."""
    x, widths = _meta(batch, seq, hidden), ((3 * hidden, hidden), (hidden, hidden), (4 * hidden, hidden))
    qkv, out, up = (_meta(*width) for width in widths)
    down = _meta(hidden, 4 * hidden)

    def run() -> torch.Tensor:
        q, k, v = F.linear(x, qkv).chunk(3, -1)
        mixed = F.linear(F.softmax(q @ k.mT, -1) @ v, out)
        return F.linear(F.gelu(F.linear(mixed, up)), down)

    return _counted(run, backward)


@cache
def attention_flops(batch: int, seq: int, hidden: int, backward: bool) -> int:
    """The two products of the attention in it."""
    q, k, v = (_meta(batch, seq, hidden) for _ in range(3))
    return _counted(lambda: F.softmax(q @ k.mT, -1) @ v, backward)


@cache
def head_flops(batch: int, seq: int, hidden: int, vocab: int) -> int:
    """The output layer, forward and backward; no checkpoint lies around it."""
    x, weight = _meta(batch, seq, hidden), _meta(vocab, hidden)
    return _counted(lambda: F.linear(x, weight), True)


def iteration_flops(batch: int, seq: int, n_layers: int, hidden: int, vocab: int, recompute: bool) -> int:
    again = layer_flops(batch, seq, hidden, False) if recompute else 0
    layers = n_layers * (layer_flops(batch, seq, hidden, True) + again)
    return layers + head_flops(batch, seq, hidden, vocab)
