"""Lab 16: what one process gets that holds everything, and what ranks get that make a mistake. Flat parameters only.

PyTorch's own optimizers make the steps. Which mistake an answer made is for the oracles to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from labkit.exercises.lab16.optimizers import make, shard_size
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Tolerance

CLOSE = Tolerance(atol=2e-5, rtol=1e-4)
"""float32 sums in another order, divided by the root of a mean of squares that is not near 0."""

Flat = list[Tensor]
"""All parameters in one row, after each step."""


def flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def trained(optimizer: str, start: Tensor, grads: Sequence[Tensor], forgets: bool = False) -> Flat:
    """The parameters after each step. forgets: every step has a new optimizer."""
    weights, after = start.clone().requires_grad_(), []
    steps = make(optimizer, [weights])
    for grad in grads:
        weights.grad = grad.clone()
        steps = make(optimizer, [weights]) if forgets else steps
        steps.step()
        after.append(weights.detach().clone())
    return after


class Played:
    """The start and each rank's gradients of a run, all parameters in one row: grads[step][rank]."""

    def __init__(self, optimizer: str, start: Tensor, grads: list[list[Tensor]]) -> None:
        self.optimizer, self.start, self.grads = optimizer, start, grads
        self.n, self.size = len(grads[0]), shard_size(len(start), len(grads[0]))

    def means(self) -> list[Tensor]:
        return [torch.stack(step).mean(0) for step in self.grads]

    def with_gradients(self, grads: Sequence[Tensor], forgets: bool = False) -> list[Flat]:
        """All ranks take the same steps."""
        return [trained(self.optimizer, self.start, grads, forgets)] * self.n

    def right(self) -> list[Flat]:
        return self.with_gradients(self.means())

    def each_for_itself(self) -> list[Flat]:
        return [trained(self.optimizer, self.start, [step[rank] for step in self.grads]) for rank in range(self.n)]

    def own_gradient_of_own_part(self) -> list[Flat]:
        """Nothing is added up: each part is updated with the gradient of the rank that it belongs to."""
        cut = [torch.cat([g[r * self.size : (r + 1) * self.size] for r, g in enumerate(step)]) for step in self.grads]
        return self.with_gradients(cut)

    def shifted(self) -> list[Flat]:
        """The gradient is cut every ⌈N/n⌉ elements, and the weights every ⌊N/n⌋."""
        n, size, short = self.n, self.size, len(self.start) // self.n
        rest = n * size - len(self.start)
        padded = torch.nn.functional.pad(self.start, (0, n * size))
        grads = [torch.nn.functional.pad(mean, (0, rest)) for mean in self.means()]
        parts = [
            trained(
                self.optimizer,
                padded[r * short : r * short + size],
                [grad[r * size : (r + 1) * size] for grad in grads],
            )
            for r in range(n)
        ]
        after = [torch.cat(step)[: len(self.start)] for step in zip(*parts, strict=True)]
        return [after] * n


MISTAKES: dict[str, Callable[[Played], list[Flat]]] = {
    "sums": lambda run: run.with_gradients([torch.stack(step).sum(0) for step in run.grads]),
    "averages twice": lambda run: run.with_gradients([mean / run.n for mean in run.means()]),
    "each for itself": Played.each_for_itself,
    "own gradient of own part": Played.own_gradient_of_own_part,
    "forgets its states": lambda run: run.with_gradients(run.means(), forgets=True),
    "shifted": Played.shifted,
    "first rank only": lambda run: run.with_gradients([step[0] for step in run.grads]),
    "adds up over steps": lambda run: run.with_gradients(list(torch.stack(run.means()).cumsum(0)) if run.grads else []),
}
"""By name: what every rank has after each step, had all ranks made this mistake."""


def same(some: list[Flat], others: list[Flat]) -> bool:
    """The same numbers on all ranks after all steps, within the tolerance."""
    pairs = [pair for a, b in zip(some, others, strict=True) for pair in zip(a, b, strict=True)]
    return all(a.shape == b.shape and torch.allclose(a, b, rtol=CLOSE.rtol, atol=CLOSE.atol) for a, b in pairs)


@once
def got_flat(run: CaseRun) -> list[Flat]:
    return [[flat(step) for step in one["after"]] for one in run.got["ranks"]]


def trained_as_with(played: Callable[[CaseRun], Played], *mistakes: str) -> Callable[[CaseRun], object]:
    """A hint's condition: the ranks ended as with one of these mistakes. CANNOT_TELL where they change nothing."""

    def when(run: CaseRun) -> object:
        one, told = run.memo(played), False
        for mistake in mistakes:
            wrong = run.memo(_of, played, mistake)
            if not same(wrong, one.right()):
                told = True
                if same(wrong, got_flat(run)):
                    return True
        return False if told else CANNOT_TELL

    return when


def _of(run: CaseRun, played: Callable[[CaseRun], Played], mistake: str) -> list[Flat]:
    return MISTAKES[mistake](run.memo(played))


def tail_stands_still(played: Callable[[CaseRun], Played]) -> Callable[[CaseRun], object]:
    """A hint's condition: the last N mod n elements never move, and all others are right."""

    def when(run: CaseRun) -> object:
        one = run.memo(played)
        n_left = len(one.start) % one.n
        if not n_left:
            return CANNOT_TELL
        right = [step.clone() for step in one.right()[0]]
        for step in right:
            step[-n_left:] = one.start[-n_left:]
        return same([right] * one.n, got_flat(run))

    return when


def only_own_part_moves(played: Callable[[CaseRun], Played]) -> Callable[[CaseRun], object]:
    """A hint's condition: on every rank each element is right or as at the start, and only a part has moved."""

    def when(run: CaseRun) -> object:
        one = run.memo(played)
        if one.n == 1:
            return CANNOT_TELL
        last, right = torch.stack([steps[-1] for steps in got_flat(run)]), one.right()[0][-1]
        fine = torch.isclose(last, right, rtol=CLOSE.rtol, atol=CLOSE.atol)
        moved = last != one.start
        few = bool((moved.sum(1) <= one.size).all())
        return few and bool((fine | ~moved).all()) and bool((fine & moved).any()) and not bool(fine.all())

    return when
