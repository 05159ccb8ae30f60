"""Lab 06: stochastic rounding, a small training task, and what an optimizer costs on it and on T5-3B.

Plumbing of the notebook: nothing here is graded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.blanks import each_written
from labkit.exercises.lab06.maps import Quantized, dynamic_map, linear_map
from labkit.exercises.lab06.playing import warm_up
from labkit.meters import measure_saved, track_ops
from labkit.meters.memory.fake import fake_tensors

__all__ = [
    "Both",
    "Quantized",
    "compare",
    "dynamic_map",
    "linear_map",
    "losses_of",
    "state_bytes_on",
    "stochastic_round",
    "t5_3b_shapes",
]

N_TOKENS, WIDTH, BATCH = 64, 64, 64
MakeOptimizer = Callable[[Iterable[nn.Parameter]], object]
"""An optimizer of such parameters: has a method `step`."""


@dataclass(frozen=True)
class Cost:
    """What an optimizer costs: Cost(8.0, 42, (4.1, 3.9)).

    state_bytes: per parameter, what its first two steps leave alive. dispatches: operations of a later step.
    loss: the mean of the last ten steps.
    """

    state_bytes: float
    dispatches: int
    losses: tuple[float, ...]

    @property
    def loss(self) -> float:
        return sum(self.losses[-10:]) / len(self.losses[-10:])


def small_model(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """Predicts the next token of a chain: 25 thousand parameters, the same ones in each call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Embedding(N_TOKENS, WIDTH),
            nn.Linear(WIDTH, 2 * WIDTH),
            nn.GELU(),
            nn.LayerNorm(2 * WIDTH),
            nn.Linear(2 * WIDTH, N_TOKENS),
        ).to(dtype)


def batches(n_steps: int) -> list[tuple[Tensor, Tensor]]:
    """Tokens and their successors in a Markov chain, whose frequent tokens are seen a hundred times as often."""
    gen = torch.Generator().manual_seed(1)
    successors = torch.softmax(3 * torch.randn(N_TOKENS, N_TOKENS, generator=gen), 1)
    frequency = 1 / (1 + torch.arange(N_TOKENS, dtype=torch.float32))
    drawn = [torch.multinomial(frequency, BATCH, replacement=True, generator=gen) for _ in range(n_steps)]
    return [(tokens, torch.multinomial(successors[tokens], 1, generator=gen).squeeze(1)) for tokens in drawn]


def losses_of(make: MakeOptimizer, n_steps: int = 200, dtype: torch.dtype = torch.float32) -> Cost:
    """Train the small model with this optimizer."""
    warm_up(make, dtype)
    model = small_model(dtype)
    parameters = list(model.parameters())
    optimizer = make(parameters)
    losses, measured, dispatches = [], {}, 0
    for step, (tokens, targets) in enumerate(batches(n_steps)):
        loss = F.cross_entropy(model(tokens).float(), targets)
        loss.backward()
        losses.append(loss.item())
        if step < 2:
            with measure_saved(measured):
                optimizer.step()
        elif step == 2:
            with track_ops() as ops:
                optimizer.step()
            dispatches = ops.dispatches
        else:
            optimizer.step()
        for parameter in parameters:
            parameter.grad = None
    n_parameters = sum(parameter.numel() for parameter in parameters)
    return Cost(measured["saved_bytes"] / n_parameters, dispatches, tuple(losses))


def compare(
    optimizers: Mapping[str, MakeOptimizer], n_steps: int = 200, dtype: torch.dtype = torch.float32
) -> dict[str, Cost]:
    """Print a row for each: state bytes per parameter, operations of a step, loss at the end."""
    costs = each_written({name: partial(losses_of, make, n_steps, dtype) for name, make in optimizers.items()})
    print(f"{'':36}{'state':>18}{'operations':>14}{'loss after':>14}")
    print(f"{'':36}{'bytes/parameter':>18}{'per step':>14}{f'{n_steps} steps':>14}")
    for name, cost in costs.items():
        print(f"{name:36}{cost.state_bytes:>18.2f}{cost.dispatches:>14}{cost.loss:>14.3f}")
    return costs


def stochastic_round(x: Tensor, generator: torch.Generator) -> Tensor:
    """Finite float32 numbers rounded to bfloat16 up or down by chance, without bias; a draw for every element.

    For numbers of the usual sizes alone: infinity, NaN and what is next to them are lab 02's business.
    """
    near = x.bfloat16()
    down = torch.where(near.float() > x, torch.nextafter(near, near.new_tensor(-torch.inf)), near)
    up = torch.where(down.float() < x, torch.nextafter(down, near.new_tensor(torch.inf)), down)
    gap = (up.float() - down.float()).clamp(min=torch.finfo(torch.float32).tiny)
    drawn = torch.rand(x.shape, generator=generator, device=x.device)
    return torch.where(drawn < (x - down.float()) / gap, up, down)


class Both:
    """Two optimizers that step together."""

    def __init__(self, first: object, second: object) -> None:
        self.optimizers = (first, second)

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()


def t5_3b_shapes() -> list[tuple[int, ...]]:
    """The shapes of T5-3B's parameters, made by transformers from its configuration without any memory."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=32128, d_model=1024, d_kv=128, d_ff=16384, num_layers=24, num_heads=32)
    with torch.device("meta"):
        model = T5ForConditionalGeneration(config)
    return [tuple(parameter.shape) for parameter in model.parameters()]


def state_bytes_on(make: MakeOptimizer, shapes: Iterable[tuple[int, ...]], dtype: torch.dtype = torch.float32) -> int:
    """Bytes that an optimizer keeps in `state` for parameters of these shapes: it steps tensors without memory."""
    total = 0
    for shape, count in Counter(shapes).items():
        with fake_tensors():
            parameter = nn.Parameter(torch.empty(shape, dtype=dtype))
            optimizer = make([parameter])
            parameter.grad = torch.empty(shape, dtype=dtype)
            optimizer.step()
            total += count * sum(map(_bytes_in, optimizer.state[parameter].values()))
    return total


def _bytes_in(kept: object) -> int:
    """Of a tensor, or of the codes and scales of quantized numbers; a count of steps is none."""
    if isinstance(kept, Quantized):
        return kept.codes.nbytes + kept.scales.nbytes
    return kept.nbytes if isinstance(kept, Tensor) else 0
