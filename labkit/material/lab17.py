"""Lab 17: what its notebook runs beside the student's own code. Nothing is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.ranks import Comm, measure_ranks, run_ranks

WIDTH, N_BLOCKS, N_CLASSES, N_TOKENS = 32, 3, 16, 256


class Block(nn.Module):
    """A norm and an MLP, added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.w_in, self.w_out = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.w_out(F.gelu(self.w_in(self.norm(x))))


def final_loss(optimizer: str, norm_factor: float, n_steps: int = 200) -> float:
    """The loss after training a small model whose norms' gradients are multiplied by norm_factor before each step.

    optimizer: "AdamW" or "SGD".
    """
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.Tanh(), nn.Linear(4 * WIDTH, N_CLASSES))
    x = torch.randn(N_TOKENS, WIDTH) * torch.logspace(-1, 1, WIDTH)
    y = teacher(x).argmax(-1)
    model = nn.Sequential(*(Block() for _ in range(N_BLOCKS)), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, N_CLASSES))
    norms = [p for module in model.modules() if isinstance(module, nn.LayerNorm) for p in module.parameters()]
    lr = {"AdamW": 1e-3, "SGD": 0.03}[optimizer]
    kind = {"AdamW": torch.optim.AdamW, "SGD": torch.optim.SGD}[optimizer]
    steps = kind(model.parameters(), lr=lr)
    for _ in range(n_steps):
        steps.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for p in norms:
            p.grad *= norm_factor
        steps.step()
    return F.cross_entropy(model(x), y).item()


@dataclass(frozen=True)
class CutLayer:
    """What a layer took on several ranks: calls and bytes of a rank in a forward and a backward pass, the share of the
    weights that a rank has, and how far output and input gradient are from one process's.

    CutLayer(collectives=2, sent=24_576, share=0.2515, error=1e-6)
    """

    collectives: int
    sent: int
    share: float
    error: float


MLP_HIDDEN, MLP_FFN, MLP_TOKENS = 64, 256, 32


def mlp_on_ranks(layer: Callable[..., nn.Module], n_ranks: int, backend: str = "gloo") -> CutLayer:
    """A forward and a backward pass of layer(w_in, b_in, w_out, b_out, comm), compared with one process."""
    ranks, traffic = measure_ranks(partial(_mlp_on_rank, layer=layer), n_ranks, backend)
    weights, x, y_grad = mlp_inputs()
    w_in, b_in, w_out, b_out = weights
    y = F.linear(F.gelu(F.linear(x, w_in, b_in)), w_out, b_out)
    y.backward(y_grad)
    errors = [max((a - y).abs().max().item(), (b - x.grad).abs().max().item()) for a, b, _ in ranks]
    share = max(n for _, _, n in ranks) / sum(one.numel() for one in weights)
    return CutLayer(max(traffic.collectives), max(traffic.bytes_sent), share, max(errors))


def mlp_inputs() -> tuple[list[Tensor], Tensor, Tensor]:
    """Whole weights, x, and the gradient of y."""
    generator = torch.Generator().manual_seed(17)
    shapes = ((MLP_FFN, MLP_HIDDEN), (MLP_FFN,), (MLP_HIDDEN, MLP_FFN), (MLP_HIDDEN,))
    weights = [torch.randn(shape, generator=generator) / shape[-1] ** 0.5 for shape in shapes]
    x, grad = (torch.randn(MLP_TOKENS, MLP_HIDDEN, generator=generator) for _ in range(2))
    return weights, x.requires_grad_(), grad


def _mlp_on_rank(comm: Comm, layer: Callable[..., nn.Module]) -> tuple[Tensor, Tensor, int]:
    weights, x, grad = mlp_inputs()
    mine = layer(*weights, comm)
    y = mine(x)
    y.backward(grad)
    return y.detach(), x.grad, sum(p.numel() for p in mine.parameters())


def heads_on_ranks(layer: Callable[..., nn.Module], n_ranks: int, n_heads: int, n_kv_heads: int) -> dict[str, float]:
    """By weight, the share of it that a rank of layer(w_q, w_k, w_v, w_o, n_heads, n_kv_heads, comm) has."""
    hidden, head_dim = 32, 4
    rows = {"w_q": n_heads, "w_k": n_kv_heads, "w_v": n_kv_heads, "w_o": n_heads}

    def rank(comm: Comm) -> dict[str, float]:
        whole = {name: torch.zeros(n * head_dim, hidden) for name, n in rows.items()}
        whole["w_o"] = whole["w_o"].T.contiguous()
        mine = layer(*whole.values(), n_heads, n_kv_heads, comm)
        return {name: getattr(mine, name).numel() / one.numel() for name, one in whole.items()}

    return run_ranks(rank, n_ranks)[0]
