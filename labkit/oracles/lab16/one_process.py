"""Lab 16: what one process gets that holds everything, and what ranks get that make a mistake. Flat parameters only.

PyTorch's own optimizers make the steps. Which mistake an answer made is for the oracles to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab16.optimizers import LEARNING_RATE, STATES, make, shard_size
from labkit.exercises.lab16.shards import ShardedSteps, draw_grads, draw_params, seen
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Tolerance

ALIKE = Tolerance(atol=2e-5, rtol=1e-4)
"""Whether an answer ended as a mistake does, which is larger than any rounding."""
ROUNDING = 2.0**-24
"""The most that one rounding to float32 changes, relative to the number."""
LARGEST_GRADIENT = 1.2

Flat = Tensor
"""All parameters in one row, after the last step."""


def bound(case: ShardedSteps) -> Tolerance:
    """How far two float32 runs of the same steps may end apart that add up in different orders: roundings, counted.

    A gradient is a sum of n_micro · n_ranks terms of one sign, so either order has it within n_micro + n_ranks
    roundings of its value, and an optimizer makes about 8 more in each step until its update is there. No update is
    larger than lr · LARGEST_GRADIENT · n_steps: momentum has added up as much by then, and AdamW divides by about what
    it has. The weight itself is rounded twice a step, by its decay and by the update.
    """
    roundings = case.n_micro + case.n_ranks + 8 * case.n_steps
    updates = case.n_steps * LEARNING_RATE * LARGEST_GRADIENT * case.n_steps
    return Tolerance(atol=2 * roundings * ROUNDING * updates, rtol=2 * 2 * case.n_steps * ROUNDING)


def flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _row(case: ShardedSteps, grads: Sequence[Tensor]) -> Tensor:
    return flat([torch.zeros_like(grad) if k == case.idle else grad for k, grad in enumerate(grads)])


def trained(optimizer: str, start: Tensor, grads: Sequence[Tensor], forgets: bool = False) -> Flat:
    """The parameters after all steps. forgets: every step has a new optimizer."""
    weights = start.clone().requires_grad_()
    steps = make(optimizer, [weights])
    for grad in grads:
        weights.grad = grad.clone()
        steps = make(optimizer, [weights]) if forgets else steps
        steps.step()
    return weights.detach()


class Played:
    """The start and each rank's gradients of a run, all parameters in one row: grads[step][rank], and last[step][rank]
    of the last micro-batch alone; reduced_again[step][rank] adds up, for each micro-batch, all gradients of the run
    until then. A parameter without a gradient has zeros."""

    def __init__(self, run: CaseRun[ShardedSteps]) -> None:
        case, seed = run.case, run.tree["seed"]
        self.case, self.optimizer, self.n = case, case.optimizer, case.n_ranks
        self.start = flat(draw_params(case, seed))
        self.size = shard_size(len(self.start), self.n)
        self.grads, self.last, self.reduced_again = [], [], []
        so_far = [torch.zeros_like(self.start)] * self.n
        for step in range(case.n_steps):
            micros = [
                [_row(case, draw_grads(case, seed, one["seed"], step, micro)) for micro in range(case.n_micro)]
                for one in run.tree["ranks"]
            ]
            self.grads.append([torch.stack(rank).mean(0) for rank in micros])
            self.last.append([rank[-1] / case.n_micro for rank in micros])
            running = [total + torch.stack(rank).cumsum(0) / case.n_micro for total, rank in zip(so_far, micros)]
            self.reduced_again.append([one.sum(0) for one in running])
            so_far = [one[-1] for one in running]

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

    def own_gradient_of_each_own_part(self) -> list[Flat]:
        """The same where every parameter is cut for itself."""

        def cut(step: list[Tensor]) -> Tensor:
            sizes = [math.prod(shape) for shape in self.case.shapes]
            rows = []
            for same_param in zip(*(grad.split(sizes) for grad in step), strict=True):
                size = shard_size(len(same_param[0]), self.n)
                rows += [grad[r * size : (r + 1) * size] for r, grad in enumerate(same_param)]
            return torch.cat(rows)

        return self.with_gradients([cut(step) for step in self.grads])

    def closed_up(self) -> list[Flat]:
        """What has no gradient is left out of the row, so that all after it moves up."""
        keep = torch.cat([torch.full((math.prod(s),), k != self.case.idle) for k, s in enumerate(self.case.shapes)])
        n_idle = int((~keep).sum())
        return self.with_gradients([torch.nn.functional.pad(mean[keep], (0, n_idle)) for mean in self.means()])

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
        return [torch.cat(parts)[: len(self.start)]] * n


MISTAKES: dict[str, Callable[[Played], list[Flat]]] = {
    "sums": lambda run: run.with_gradients([torch.stack(step).sum(0) for step in run.grads]),
    "averages twice": lambda run: run.with_gradients([mean / run.n for mean in run.means()]),
    "averages micro-batches": lambda run: run.with_gradients([mean / run.case.n_micro for mean in run.means()]),
    "each for itself": Played.each_for_itself,
    "own gradient of own part": Played.own_gradient_of_own_part,
    "own gradient of each own part": Played.own_gradient_of_each_own_part,
    "forgets its states": lambda run: run.with_gradients(run.means(), forgets=True),
    "shifted": Played.shifted,
    "closed up": Played.closed_up,
    "reduced again": lambda run: run.with_gradients([torch.stack(step).mean(0) for step in run.reduced_again]),
    "first rank only": lambda run: run.with_gradients([step[0] for step in run.grads]),
    "last micro-batch only": lambda run: run.with_gradients([torch.stack(step).mean(0) for step in run.last]),
    "adds up over steps": lambda run: run.with_gradients(list(torch.stack(run.means()).cumsum(0)) if run.grads else []),
}
"""By name: what every rank has at the end, had all ranks made this mistake."""


def same(some: list[Flat], others: list[Flat]) -> bool:
    """The same numbers on all ranks, within the tolerance."""
    pairs = zip(some, others, strict=True)
    return all(a.shape == b.shape and torch.allclose(a, b, rtol=ALIKE.rtol, atol=ALIKE.atol) for a, b in pairs)


@once
def got_flat(run: CaseRun) -> list[Flat]:
    """What each rank has at the end."""
    return [flat(one["after"]) for one in run.got["ranks"]]


@once
def played(run: CaseRun[ShardedSteps]) -> Played:
    return Played(run)


def in_shapes(case: ShardedSteps, row: Flat) -> list[Tensor]:
    """The parameters in such a row, as much of them as comes back."""
    parts = row.split([math.prod(shape) for shape in case.shapes])
    return seen(case, [part.view(shape) for part, shape in zip(parts, case.shapes)])


def shown(case: ShardedSteps, rows: Sequence[Flat]) -> list[Flat]:
    """Of each row what comes back, in a row again."""
    return [flat(in_shapes(case, row)) for row in rows]


@once
def right_rows(run: CaseRun[ShardedSteps]) -> list[Flat]:
    """What each rank should have, as `got_flat` has it."""
    return shown(run.case, played(run).right())


@once
def right_params(run: CaseRun[ShardedSteps]) -> list[Tensor]:
    """What every rank should have, as much of it as comes back."""
    return in_shapes(run.case, played(run).right()[0])


def as_in_one_process(run: CaseRun[ShardedSteps]) -> str | None:
    """A property: at the end all ranks have the weights of one process that averages the ranks' gradients."""
    for rank, one in enumerate(run.got["ranks"]):
        if found := compare(right_params(run), one["after"], bound(run.case)):
            place = f"parameter {found.path}{list(found.index) if found.index else ''}"
            steps = f"after {run.case.n_steps} steps"
            return f"{steps} rank {rank} has {found.got} in {place}, and one process has {found.expected}"
    return None


def replicas(run: CaseRun) -> str | None:
    """A property: all ranks have the same bits."""
    first, *others = (one["after"] for one in run.got["ranks"])
    for rank, other in enumerate(others, 1):
        if compare(first, other) is not None:
            return f"the parameters of rank 0 and rank {rank} are close, but not the same bits"
    return None


replicas.hint = "All ranks copy what the all-gather brought, their own part included: then they have the same bits."


def trained_as_with(*mistakes: str) -> Callable[[CaseRun], object]:
    """A hint's condition: the ranks ended as with one of these mistakes. CANNOT_TELL where they change nothing."""

    def when(run: CaseRun) -> object:
        told = False
        for mistake in mistakes:
            wrong = _of(run, mistake)
            if not same(wrong, right_rows(run)):
                told = True
                if same(wrong, got_flat(run)):
                    return True
        return False if told else CANNOT_TELL

    return when


@once
def _of(run: CaseRun, mistake: str) -> list[Flat]:
    return shown(run.case, MISTAKES[mistake](played(run)))


def tail_stands_still(run: CaseRun) -> object:
    """The last N mod n elements never move, and all others are right."""
    one = played(run)
    n_left = len(one.start) % one.n
    if not n_left or run.case.is_large:
        return CANNOT_TELL
    right = one.right()[0].clone()
    right[-n_left:] = one.start[-n_left:]
    return same([right] * one.n, got_flat(run))


def only_own_part_moves(run: CaseRun) -> object:
    """On every rank each element is right or as at the start, and only a part has moved."""
    one = played(run)
    if one.n == 1 or run.case.is_large:
        return CANNOT_TELL
    last, right = torch.stack(got_flat(run)), one.right()[0]
    fine = torch.isclose(last, right, rtol=ALIKE.rtol, atol=ALIKE.atol)
    moved = last != one.start
    few = bool((moved.sum(1) <= run.case.cut_elements).all())
    return few and bool((fine | ~moved).all()) and bool((fine & moved).any()) and not bool(fine.all())


def nothing_moved(run: CaseRun) -> bool:
    (start,) = shown(run.case, [played(run).start])
    return all(torch.equal(one, start) for one in got_flat(run))


def part_not_updated(run: CaseRun) -> object:
    """Nothing has moved, and the optimizer has the states of nothing, or those of more than a part."""
    first = run.got["ranks"][0]
    if not nothing_moved(run) or not first["n_updates"]:
        return False
    return (
        not first["state_bytes"] or states_are_cut(run) is not None or (CANNOT_TELL if run.case.n_ranks == 1 else False)
    )


def nearly_right(run: CaseRun[ShardedSteps]) -> bool:
    """Not right, but as close on all ranks as if the numbers had had 16 bits on the way, bfloat16 at the worst."""
    if as_in_one_process(run) is None:
        return False
    pairs = zip(right_rows(run), got_flat(run), strict=True)
    return all(torch.allclose(got, right, rtol=2**-7, atol=2**-7 * LEARNING_RATE) for right, got in pairs)


def idle_moves_otherwise(run: CaseRun[ShardedSteps]) -> bool:
    """What has a gradient is right, and what has none is not."""
    case = run.case
    if case.idle < 0 or case.is_large or same(right_rows(run), got_flat(run)):
        return False
    keep = flat([torch.full(shape, k != case.idle) for k, shape in enumerate(case.shapes)])
    return same([one[keep] for one in played(run).right()], [one[keep] for one in got_flat(run)])


def most_state_bytes(case: ShardedSteps) -> int:
    """An n-th of every parameter, rounded up, so that it is also enough for who cuts each parameter for itself."""
    return 4 * STATES[case.optimizer] * case.cut_elements


def states_are_not_whole(run: CaseRun[ShardedSteps]) -> str | None:
    """A property: no rank's optimizer holds the states of all parameters, where they are more than a shard's."""
    whole = 4 * STATES[run.case.optimizer] * run.case.n_elements
    for rank, one in enumerate(run.got["ranks"]):
        if one["state_bytes"] >= whole > most_state_bytes(run.case):
            return (
                f"the optimizer states of rank {rank} take {one['state_bytes']} bytes, as many as those of everything"
            )
    return None


states_are_not_whole.hint = (
    "The weights are right, and the states are not cut: every rank updates everything. Give make_optimizer the rank's "
    "own part of the weights alone, cloned, so that it is no view of the whole."
)


def states_are_cut(run: CaseRun[ShardedSteps]) -> str | None:
    """A property: each rank's optimizer holds the states of a shard."""
    most = most_state_bytes(run.case)
    for rank, one in enumerate(run.got["ranks"]):
        if one["state_bytes"] > most:
            return (
                f"the optimizer states of rank {rank} take {one['state_bytes']} bytes; a shard of the "
                f"{run.case.n_elements} parameters needs {most} at most"
            )
    return None


states_are_cut.hint = (
    "The weights are right, and a rank's optimizer holds more than an n-th of the states, rounded up. Parts of equal "
    "length hold least: where whole parameters are dealt to ranks, who gets the largest holds too much."
)


def made_by_maker(run: CaseRun[ShardedSteps]) -> str | None:
    """A property: the optimizers of make_optimizer made the steps. A rank with an empty shard may have none: the first
    rank never has."""
    done, n_steps = run.got["ranks"][0]["n_updates"], run.case.n_steps
    return None if done >= n_steps else f"rank 0's optimizer from make_optimizer took {done} of {n_steps} steps"


made_by_maker.hint = "Make the optimizer of the shard with make_optimizer, once, and call its step() in each step."
