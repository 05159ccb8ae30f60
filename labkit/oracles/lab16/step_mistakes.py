"""Lab 16: what ranks get that make a mistake in a sharded step, by PyTorch's own optimizers. Flat parameters only."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from labkit.exercises.lab16.optimizers import LEARNING_RATE, shard_size
from labkit.exercises.lab16.shards import ShardedSteps
from labkit.oracles.hints import once
from labkit.oracles.lab16.one_process import (
    Flat,
    Played,
    as_in_one_process,
    flat,
    got_flat,
    played,
    right_rows,
    shown,
    trained,
)
from labkit.oracles.lab16.optimizer_states import states_are_cut
from labkit.spec import CANNOT_TELL, CaseRun, Tolerance

ALIKE = Tolerance(atol=2e-5, rtol=1e-4)
"""Whether an answer ended as a mistake does, which is larger than any rounding."""


def each_for_itself(run: Played) -> list[Flat]:
    return [trained(run.optimizer, run.start, [step[rank] for step in run.grads]) for rank in range(run.n)]


def own_gradient_of_own_part(run: Played) -> list[Flat]:
    """Nothing is added up: each part is updated with the gradient of the rank that it belongs to."""
    cut = [torch.cat([g[r * run.size : (r + 1) * run.size] for r, g in enumerate(step)]) for step in run.grads]
    return run.with_gradients(cut)


def own_gradient_of_each_own_part(run: Played) -> list[Flat]:
    """The same where every parameter is cut for itself."""

    def cut(step: list[Tensor]) -> Tensor:
        sizes = [math.prod(shape) for shape in run.case.shapes]
        rows = []
        for same_param in zip(*(grad.split(sizes) for grad in step), strict=True):
            size = shard_size(len(same_param[0]), run.n)
            rows += [grad[r * size : (r + 1) * size] for r, grad in enumerate(same_param)]
        return torch.cat(rows)

    return run.with_gradients([cut(step) for step in run.grads])


def closed_up(run: Played) -> list[Flat]:
    """What has no gradient is left out of the row, so that all after it moves up."""
    keep = torch.cat([torch.full((math.prod(s),), k != run.case.idle) for k, s in enumerate(run.case.shapes)])
    n_idle = int((~keep).sum())
    return run.with_gradients([torch.nn.functional.pad(mean[keep], (0, n_idle)) for mean in run.means()])


def shifted(run: Played) -> list[Flat]:
    """The gradient is cut every ⌈N/n⌉ elements, and the weights every ⌊N/n⌋."""
    n, size, short = run.n, run.size, len(run.start) // run.n
    rest = n * size - len(run.start)
    padded = torch.nn.functional.pad(run.start, (0, n * size))
    grads = [torch.nn.functional.pad(mean, (0, rest)) for mean in run.means()]
    parts = [
        trained(
            run.optimizer,
            padded[r * short : r * short + size],
            [grad[r * size : (r + 1) * size] for grad in grads],
        )
        for r in range(n)
    ]
    return [torch.cat(parts)[: len(run.start)]] * n


MISTAKES: dict[str, Callable[[Played], list[Flat]]] = {
    "sums": lambda run: run.with_gradients([torch.stack(step).sum(0) for step in run.grads]),
    "averages twice": lambda run: run.with_gradients([mean / run.n for mean in run.means()]),
    "averages micro-batches": lambda run: run.with_gradients([mean / run.case.n_micro for mean in run.means()]),
    "each for itself": each_for_itself,
    "own gradient of own part": own_gradient_of_own_part,
    "own gradient of each own part": own_gradient_of_each_own_part,
    "forgets its states": lambda run: run.with_gradients(run.means(), forgets=True),
    "shifted": shifted,
    "closed up": closed_up,
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
