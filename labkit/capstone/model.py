"""The model that all scripts train: a decoder of norm, attention, norm and MLP, whose head is its embedding.

It has no knobs but the kind of attention. What to recompute, to shard or to cast is the script's.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.capstone.size import Size

EAGER, FUSED = "eager", "fused"


class Norm(nn.Module):
    """A layer norm without bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight)


class Block(nn.Module):
    """x + attention(norm(x)), and then x + mlp(norm(x))."""

    def __init__(self, size: Size, attention: str) -> None:
        super().__init__()
        width = size.width
        self.n_heads, self.attention = size.n_heads, attention
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))

    def attend(self, x: Tensor) -> Tensor:
        """Causal attention, as three products with a softmax, or fused, which keeps no scores."""
        batch, seq, width = x.shape
        parts = self.qkv(x).view(batch, seq, 3, self.n_heads, width // self.n_heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        if self.attention == FUSED:
            heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            future = torch.ones(seq, seq, dtype=torch.bool, device=x.device).triu(1)
            heads = scores.masked_fill(future, -math.inf).softmax(-1) @ v
        return self.out(heads.transpose(1, 2).reshape(batch, seq, width))


class Decoder(nn.Module):
    """model(tokens) -> logits. In steps: embed(tokens), each of `blocks`, `norm`, and `head`, a (vocab, width) weight.

    Raises ValueError for a kind of attention that there is not.
    """

    def __init__(self, size: Size, attention: str = EAGER) -> None:
        super().__init__()
        if attention not in (EAGER, FUSED):
            raise ValueError(f'attention is "{EAGER}" or "{FUSED}", not {attention!r}')
        self.tokens = nn.Embedding(size.vocab, size.width)
        self.positions = nn.Embedding(size.seq_len, size.width)
        self.blocks = nn.ModuleList(Block(size, attention) for _ in range(size.n_layers))
        self.norm = Norm(size.width)

    @property
    def head(self) -> nn.Parameter:
        """The weight that turns what `norm` returns into logits: the embedding's own."""
        return self.tokens.weight

    def embed(self, tokens: Tensor) -> Tensor:
        """What goes into the first block."""
        return self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.head)


def start(model: Decoder, generator: torch.Generator | None) -> None:
    """Draw the weights, on whatever device they are."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                width = parameter.shape[1]
                std = 0.5 / width**0.5 if "blocks" in name else 1 / width**0.5
                parameter.normal_(std=std, generator=generator)
