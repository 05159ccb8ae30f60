"""Lab 17: what is asked, given and run for an MLP block whose norm, dropout and residual are cut over the sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab17.layers import BACKWARD, BUILT, FORWARD, one_seed, shape_of, some, warm_up
from labkit.spec import Answer, Case, Exercise, Run

NAMES = ("norm_weight", "norm_bias", "w_in", "b_in", "w_out", "b_out")
REPLICATED = ("norm_weight", "norm_bias", "b_out")
N_DRAWN = 48
"""Numbers that are drawn from each generator to compare them."""


@dataclass(frozen=True)
class Block(Case):
    """x of shape (sequence, batch, hidden), of which each rank has an equal part of the sequence. p: of dropout."""

    n_ranks: int = 3
    sequence: int = 6
    batch: int = 2
    hidden: int = 5
    ffn: int = 6
    p: float = 0.0
    n_micro: int = 1

    @property
    def part_elements(self) -> int:
        """Of a rank's part of x."""
        return self.sequence * self.batch * self.hidden // self.n_ranks


def draw_weights(case: Block, seed: int) -> tuple[Tensor, ...]:
    """The whole of them, as every rank is handed them."""
    gen = torch.Generator().manual_seed(seed)
    norm_weight = 0.5 + torch.rand(case.hidden, generator=gen)
    norm_bias = torch.randn(case.hidden, generator=gen)
    w_in = torch.randn(case.ffn, case.hidden, generator=gen) * (2 / case.hidden) ** 0.5
    b_in = torch.randn(case.ffn, generator=gen)
    w_out = torch.randn(case.hidden, case.ffn, generator=gen) * (2 / case.ffn) ** 0.5
    return norm_weight, norm_bias, w_in, b_in, w_out, 1 + torch.rand(case.hidden, generator=gen)


def draw_micro_batch(case: Block, seed: int, micro: int) -> tuple[Tensor, Tensor]:
    """The whole x, and the gradient of the whole y."""
    gen = torch.Generator().manual_seed(seed + 1 + micro)
    shape = (case.sequence, case.batch, case.hidden)
    return torch.randn(shape, generator=gen), torch.randn(shape, generator=gen)


def dropout_seed(seed: int) -> int:
    """What the answer is handed as its seed."""
    return seed % 10_000


def drive_block(ans, case: Block, tree: dict, stage) -> dict[str, Any]:
    """y, which elements dropout kept, the gradient of x; each parameter's shape and gradient; what generators drew."""
    found: dict[str, Any] = {"y": [], "kept": [], "x": []}
    seed = tree["seed"]
    mine = slice(stage.rank * case.sequence // case.n_ranks, (stage.rank + 1) * case.sequence // case.n_ranks)
    drawn = [_drawn(ans.dropout_generators(one, stage.comm)) for one in (7, 7, 8)]
    warm_up()
    with stage.meter("memory"):
        weights = [one.to(stage.device) for one in draw_weights(case, seed)]
        block = ans.SequenceParallelMLP(*weights, case.p, dropout_seed(seed), stage.comm)
        del weights
        stage.mark(BUILT)
        for micro in range(case.n_micro):
            x, grad = (whole[mine].clone().to(stage.device) for whole in draw_micro_batch(case, seed, micro))
            x.requires_grad_()
            y = block(x)
            stage.mark(FORWARD)
            y.backward(grad)
            stage.mark(BACKWARD)
            found["y"].append(some(y))
            found["kept"].append((y != x).detach() if case.p else None)
            found["x"].append(some(x.grad))
        parameters = {name: getattr(block, name) for name in NAMES}
        found["shapes"] = {name: shape_of(one) for name, one in parameters.items()}
        found["grads"] = {name: some(one.grad) for name, one in parameters.items()}
    return found | {"drawn": drawn}


def _drawn(generators: tuple[torch.Generator, torch.Generator]) -> list[Tensor]:
    """From the generator of replicated tensors, and from that of sharded ones."""
    replicated, sharded = generators
    return [torch.rand(N_DRAWN, generator=one) for one in (replicated, sharded)]


SEQUENCE_PARALLEL = Exercise(
    id="17-sequence-parallel",
    title="Norm, dropout and residual, cut over the sequence",
    points=5,
    minutes=30,
    difficulty=3,
    answers=(Answer("dropout_generators"), Answer("SequenceParallelMLP")),
    public=(
        Block(),
        Block(4, 8, 1, 6, 10, n_micro=2),
        Block(5, 5, 2, 4, 3),
        Block(3, 12, 2, 8, 9, p=0.5, n_micro=2),
        Block(4, 1600, 1, 512, 8),
        Block(1, 4, 6, 5, 5, p=0.25),
    ),
    inputs=one_seed,
    drive=drive_block,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=40.0),
    meters=("memory",),
)
