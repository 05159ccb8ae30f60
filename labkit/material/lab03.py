"""Lab 03: the model that the notebook trains, its gradients, and what autocast and a KV cache do on this machine's CPU.

Plumbing of the notebook only: nothing here is asked, checked or graded, and no rule of autocast stands here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.exercises.lab03.autocast_ops import SIDE, Op, call
from labkit.material.cache_name import cache_name


class Scaler(Protocol):
    """What torch.amp.GradScaler and the student's LossScaler have in common."""

    def get_scale(self) -> float: ...
    def scale(self, loss: Tensor) -> Tensor: ...
    def step(self, optimizer: torch.optim.Optimizer) -> object: ...
    def update(self) -> None: ...


N_SYMBOLS = 512
BATCH_SIZE = 512
FOLLOWS = torch.randperm(N_SYMBOLS, generator=torch.Generator().manual_seed(0))
"""(N_SYMBOLS,), int64: the symbol that follows each symbol, which the model has to learn."""


class Block(nn.Module):
    """x + MLP(norm(x))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    """Learns which symbol follows which. model(x, y) is the mean cross-entropy; x and y: (batch,), int64."""

    def __init__(self, width: int = 64, n_blocks: int = 4) -> None:
        super().__init__()
        self.table = nn.Embedding(N_SYMBOLS, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(n_blocks)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, N_SYMBOLS, bias=False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.norm(self.blocks(self.table(x)))), y)


def batch() -> tuple[Tensor, Tensor]:
    """Symbols at random, and those that follow them: x and y, (BATCH_SIZE,)."""
    x = torch.randint(N_SYMBOLS, (BATCH_SIZE,))
    return x, FOLLOWS[x]


def print_losses(runs: Mapping[str, Sequence[float]], every: int = 10) -> None:
    """A table of losses: a row for each run, a column for every `every`-th step."""
    n_steps = max(map(len, runs.values()))
    print(f"{'loss at step':26}" + "".join(f"{step:>8}" for step in range(0, n_steps, every)))
    for name, losses in runs.items():
        print(f"{name:26}" + "".join(f"{loss:>8.3f}" for loss in losses[::every]))


def histogram(values: Tensor) -> tuple[Tensor, Tensor]:
    """Of the values that are not 0: exponents from the smallest to the largest, and how many values have each."""
    # frexp's fraction lies in [0.5, 1), hence the 1.
    exponent = torch.frexp(values[values != 0]).exponent.long() - 1
    lowest = exponent.min().item()
    return torch.arange(lowest, exponent.max().item() + 1), torch.bincount(exponent - lowest)


def gradients_in_training(steps: Iterable[int]) -> tuple[dict[int, Tensor], dict[int, float]]:
    """Train in float32, and look at the gradients at these steps.

    By step: the gradients of the linear layers' results and weights, all in one row; and the smallest power of two
    that overflows a real step in float16 when it scales the loss.
    """
    steps = set(steps)
    torch.manual_seed(0)
    model, gradients, too_large = Model(), {}, {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(max(steps) + 1):
        x, y = batch()
        if step in steps:
            too_large[step] = first_overflow(model, x, y)
        optimizer.zero_grad()
        if step in steps:
            gradients[step] = linear_gradients(model, x, y)
        else:
            model(x, y).backward()
        optimizer.step()
    return gradients, too_large


def linear_gradients(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The gradients of the linear layers' results and weights, all in one row, in float32. Adds to p.grad."""
    found = []
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]

    def note(layer: nn.Module, into: tuple, out_of: tuple) -> None:
        found.append(out_of[0].flatten())

    hooks = [layer.register_full_backward_hook(note) for layer in layers]
    model(x, y).backward()
    for hook in hooks:
        hook.remove()
    found += [p.grad.flatten() for layer in layers for p in layer.parameters()]
    return torch.cat(found)


def first_overflow(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """The smallest power of two that makes a gradient infinite when it scales a real float16 step. Changes p.grad."""
    for scale in (2.0**power for power in range(16, 64)):
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = model(x, y)
        (scale * loss).backward()
        if not all(p.grad.isfinite().all() for p in model.parameters()):
            return scale
    return math.inf


def n_skipped(scaler: Scaler, gradient: float, n_steps: int = 30) -> int:
    """How often this scaler backs off when the true gradient is the same in every step, and comes in float16."""
    parameter = nn.Parameter(torch.ones(()))
    optimizer, n_steps_skipped = torch.optim.SGD([parameter], lr=0.0), 0
    for _ in range(n_steps):
        before = scaler.get_scale()
        parameter.grad = (gradient * scaler.scale(torch.ones(()))).half().float()
        scaler.step(optimizer)
        scaler.update()
        n_steps_skipped += scaler.get_scale() < before
    return n_steps_skipped


def train_divided(n_parts: int, dtype: torch.dtype, scaled: bool, n_steps: int = 41) -> list[float]:
    """The losses of a training under autocast in which each batch counts as one of n_parts micro-batches.

    Its loss is divided by n_parts before backward, and the losses are those before the division. dtype: float32 trains
    without autocast. scaled: whether a GradScaler takes part.
    """
    torch.manual_seed(0)
    model, scaler = Model(), torch.amp.GradScaler("cpu", enabled=scaled)
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=3e-3), []
    for _ in range(n_steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
            loss = model(*batch())
        scaler.scale(loss / n_parts).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


def measured_on_cpu(ops: Iterable[Op], given: Mapping[str, torch.dtype], low: torch.dtype) -> dict[str, torch.dtype]:
    """The dtype of every result when the block is run on the CPU under torch.autocast("cpu", low)."""
    values = {name: torch.ones(SIDE, SIDE, dtype=dtype) for name, dtype in given.items()}
    dtypes = {}
    with torch.no_grad(), torch.autocast("cpu", dtype=low):
        for op in ops:
            values[op.result] = call(op.function, (values[name] for name in op.inputs))
            dtypes[op.result] = values[op.result].dtype
    return dtypes


@torch.no_grad()
def cache_error(dtype: torch.dtype) -> tuple[float, float]:
    """Of a Llama with random weights: the largest difference of its logits with and without a KV cache, and the
    largest logit. The head's weights are multiplied by 10, so that logits have the size that trained models have.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 512}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=4, num_attention_heads=4))
    model.lm_head.weight.mul_(10)
    model = model.to(dtype).eval()
    tokens = torch.randint(512, (4, 48))
    at_once = model(tokens, use_cache=False).logits
    name, cache, one_by_one = cache_name(), None, []
    for column in tokens.unbind(1):
        output = model(column[:, None], use_cache=True, **{name: cache})
        cache = output[name]
        one_by_one.append(output.logits)
    error = (torch.cat(one_by_one, dim=1).double() - at_once.double()).abs().max().item()
    return error, at_once.abs().max().item()


def best_ms(width: int, dtype: torch.dtype, autocast: bool) -> float:
    """The shortest of five training steps of a model of this width, in milliseconds of CPU time."""
    model, (x, y) = Model(width).to(dtype), batch()
    optimizer, times_ms = torch.optim.AdamW(model.parameters()), []
    for _ in range(5):
        start_s = time.process_time()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = model(x, y)
        loss.backward()
        optimizer.step()
        times_ms.append(1e3 * (time.process_time() - start_s))
    return min(times_ms)
