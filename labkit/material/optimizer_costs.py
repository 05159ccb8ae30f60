"""Lab 06: what an optimizer costs and what it reaches: small trainings, each printed as a table.

A row whose answer is not written yet is left out. What an optimizer computes is none of its business.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves

from labkit.blanks import each_written
from labkit.exercises.lab06.maps import Quantized
from labkit.meters import measure_saved, track_memory, track_ops
from labkit.meters.memory.fake import fake_tensors

MakeOptimizer = Callable[[Iterable[nn.Parameter]], object]
"""An optimizer of such parameters: has the methods `step` and `state_dict`."""
InBackward = Callable[[nn.Module, MakeOptimizer], None]
"""Has every backward pass step the model, as 06-step-in-backward asks."""
Shapes = Sequence[tuple[int, ...]]
Batch = tuple[Tensor, Tensor]

N_TOKENS, WIDTH, BATCH = 64, 64, 64
MANY_TOKENS, LARGE_BATCH, RANK = 512, 256, 24
"""Of the task at equal bytes: its chain has a table of this rank, so that a wider model has more to learn."""


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


@dataclass(frozen=True)
class Plan:
    """How to train: Plan(partial(AdamW, lr=6e-3)). in_backward: `step_in_backward`, or None for an ordinary loop."""

    make: MakeOptimizer
    dtype: torch.dtype = torch.float32
    in_backward: InBackward | None = None


def small_model(dtype: torch.dtype = torch.float32, n_tokens: int = N_TOKENS, width: int = WIDTH) -> nn.Sequential:
    """Predicts the next token of a chain; 21 thousand parameters, the same ones in each call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Embedding(n_tokens, width),
            nn.Linear(width, 2 * width),
            nn.GELU(),
            nn.LayerNorm(2 * width),
            nn.Linear(2 * width, n_tokens),
        ).to(dtype)


@cache
def batches(n_steps: int) -> list[Batch]:
    """Tokens and their successors in a Markov chain, whose frequent tokens are seen a hundred times as often."""
    gen = torch.Generator().manual_seed(1)
    successors = torch.softmax(3 * torch.randn(N_TOKENS, N_TOKENS, generator=gen), 1)
    frequency = 1 / (1 + torch.arange(N_TOKENS, dtype=torch.float32))
    return list(_walks(successors, frequency, BATCH, n_steps, gen))


@cache
def many_tokens(n_steps: int) -> list[Batch]:
    """The same with 512 tokens, all equally frequent, and a table of successors of rank 24."""
    gen = torch.Generator().manual_seed(2)
    left, right = (torch.randn(MANY_TOKENS, RANK, generator=gen) for _ in range(2))
    successors = torch.softmax(3 * left @ right.T / RANK**0.5, 1)
    return list(_walks(successors, torch.ones(MANY_TOKENS), LARGE_BATCH, n_steps, gen))


def _walks(successors: Tensor, frequency: Tensor, n: int, n_steps: int, gen: torch.Generator) -> Iterator[Batch]:
    for _ in range(n_steps):
        tokens = torch.multinomial(frequency, n, replacement=True, generator=gen)
        yield tokens, torch.multinomial(successors[tokens], 1, generator=gen).squeeze(1)


def loss_of(model: nn.Module, batch: Batch) -> Tensor:
    return F.cross_entropy(model(batch[0]).float(), batch[1])


def losses_of(make: MakeOptimizer, n_steps: int = 200, dtype: torch.dtype = torch.float32) -> Cost:
    """Train the small model with this optimizer."""
    if n_steps > 3:
        losses_of(make, 3, dtype)  # what Python keeps of the first steps is no state of the optimizer
    model = small_model(dtype)
    parameters = list(model.parameters())
    optimizer = make(parameters)
    losses, measured, dispatches = [], {}, 0
    for step, batch in enumerate(batches(n_steps)):
        loss = loss_of(model, batch)
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
        model.zero_grad()
    n_parameters = sum(parameter.numel() for parameter in parameters)
    return Cost(measured["saved_bytes"] / n_parameters, dispatches, tuple(losses))


def compare(
    optimizers: Mapping[str, MakeOptimizer], n_steps: int = 200, dtype: torch.dtype = torch.float32
) -> dict[str, Cost]:
    """Print a row for each: state bytes per parameter, operations of a step, loss at the end."""
    costs = each_written({name: partial(losses_of, make, n_steps, dtype) for name, make in optimizers.items()})
    _print_costs("state", n_steps, costs)
    return costs


def compare_in_backward(
    ways: Mapping[str, InBackward | None], make: MakeOptimizer, n_steps: int = 200
) -> dict[str, Cost]:
    """Print a row for each way of stepping, None being the ordinary loop: gradients alive, operations, loss.

    Here `state_bytes` are those of the gradients, at their peak, and the operations are of a backward pass and a step.
    """
    costs = each_written({name: partial(_in_backward, way, make, n_steps) for name, way in ways.items()})
    _print_costs("gradients", n_steps, costs)
    return costs


def _in_backward(way: InBackward | None, make: MakeOptimizer, n_steps: int) -> Cost:
    model = small_model()
    optimizer = make(model.parameters()) if way is None else way(model, make)

    def update(loss: Tensor) -> None:
        loss.backward()
        if optimizer is not None:
            optimizer.step()
            model.zero_grad()

    losses, dispatches, gradients = [], 0, 0
    for step, batch in enumerate(batches(n_steps)):
        loss = loss_of(model, batch)
        losses.append(loss.item())
        if step == 2:
            with track_ops() as ops:
                update(loss)
            dispatches = ops.dispatches
        elif step == 3:
            with track_memory(model, sites=False) as profile:
                update(loss)
            gradients = max(profile.by_category_at(i).get("gradients", 0) for i in range(len(profile.timeline)))
        else:
            update(loss)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    return Cost(gradients / n_parameters, dispatches, tuple(losses))


def _print_costs(what: str, n_steps: int, costs: Mapping[str, Cost]) -> None:
    print(f"{'':36}{what:>18}{'operations':>14}{'loss after':>14}")
    print(f"{'':36}{'bytes/parameter':>18}{'per step':>14}{f'{n_steps} steps':>14}")
    for name, cost in costs.items():
        print(f"{name:36}{cost.state_bytes:>18.2f}{cost.dispatches:>14}{cost.loss:>14.3f}")


@dataclass(frozen=True)
class StepCost:
    """What one step costs: StepCost(20, 4.0). temporary_bytes: per parameter, at the peak beyond what was there."""

    dispatches: int
    temporary_bytes: float


def step_cost(make: MakeOptimizer, n_tensors: int, size: int = 64) -> StepCost:
    """Of the third step, on square matrices of this size."""
    parameters = [nn.Parameter(torch.ones(size, size)) for _ in range(n_tensors)]
    optimizer = make(parameters)
    for parameter in parameters:
        parameter.grad = torch.ones(size, size)
    optimizer.step()
    with track_ops() as ops:
        optimizer.step()
    with track_memory(sites=False) as profile:
        optimizer.step()
    return StepCost(ops.dispatches, (profile.peak_bytes - profile.live_bytes) / (n_tensors * size**2))


def compare_sizes(optimizers: Mapping[str, MakeOptimizer], counts: Sequence[int]) -> dict[tuple[str, int], StepCost]:
    """Print a row for each optimizer: its operations and temporary bytes in a step on so many tensors."""
    pairs = {(name, n): partial(step_cost, make, n) for name, make in optimizers.items() for n in counts}
    costs = each_written(pairs)
    print(f"{'':36}" + "".join(f"{f'{n} tensors':>16}" for n in counts) + f"{'temporary':>20}")
    for name in dict.fromkeys(name for name, _ in costs):
        cells = "".join(f"{costs[name, n].dispatches:>5} operations" for n in counts)
        print(f"{name:36}{cells}{costs[name, counts[-1]].temporary_bytes:>9.2f} B/parameter")
    return costs


def train_at_equal_bytes(plans: Mapping[str, Plan], n_bytes: int, n_steps: int = 200) -> dict[str, tuple[float, ...]]:
    """The losses of the widest model that fits into n_bytes with its gradients and states, for each plan; prints it."""
    rows = each_written({name: partial(_widest, plan, n_bytes, n_steps) for name, plan in plans.items()})
    print(f"{f'within {n_bytes / 1e3:.0f} kB':30}{'width':>8}{'parameters':>14}{'loss at the end':>18}")
    for name, (width, losses) in rows.items():
        n_parameters = sum(map(math.prod, _shapes(width)))
        print(f"{name:30}{width:>8}{n_parameters:>14,}{sum(losses[-20:]) / 20:>18.2f}")
    return {name: losses for name, (_, losses) in rows.items()}


def _widest(plan: Plan, n_bytes: int, n_steps: int) -> tuple[int, tuple[float, ...]]:
    width = bisect_right(range(128), n_bytes, lo=1, key=partial(_all_bytes, plan)) - 1
    model = small_model(plan.dtype, MANY_TOKENS, width)
    optimizer = plan.make(model.parameters()) if plan.in_backward is None else plan.in_backward(model, plan.make)
    losses = []
    for batch in many_tokens(n_steps):
        loss = loss_of(model, batch)
        loss.backward()
        losses.append(loss.item())
        if optimizer is not None:
            optimizer.step()
            model.zero_grad()
    return width, tuple(losses)


def _all_bytes(plan: Plan, width: int) -> int:
    """Of weights, gradients (the largest alone, where the step is in the backward pass) and states."""
    shapes = _shapes(width)
    sizes = [plan.dtype.itemsize * math.prod(shape) for shape in shapes]
    gradients = sum(sizes) if plan.in_backward is None else max(sizes)
    return sum(sizes) + gradients + state_bytes_on(plan.make, shapes, plan.dtype)


@cache
def _shapes(width: int) -> Shapes:
    with torch.device("meta"):
        return [tuple(one.shape) for one in small_model(n_tokens=MANY_TOKENS, width=width).parameters()]


def state_bytes_on(make: MakeOptimizer, shapes: Iterable[tuple[int, ...]], dtype: torch.dtype = torch.float32) -> int:
    """Bytes that an optimizer saves for parameters of these shapes: it steps tensors without memory.

    It is asked for its `state_dict()`: an optimizer need not be derived from PyTorch's.
    """
    total = 0
    for shape, count in Counter(shapes).items():
        with fake_tensors():
            parameter = nn.Parameter(torch.empty(shape, dtype=dtype))
            optimizer = make([parameter])
            parameter.grad = torch.empty(shape, dtype=dtype)
            optimizer.step()
            total += count * sum(map(_bytes_in, tree_leaves(optimizer.state_dict())))
    return total


def _bytes_in(kept: object) -> int:
    """Of a tensor, or of the codes and scales of quantized numbers; a count of steps is none."""
    if isinstance(kept, Quantized):
        return kept.codes.nbytes + kept.scales.nbytes
    return kept.nbytes if isinstance(kept, Tensor) else 0
