"""Lab 14: what is true of an all-reduce over nodes, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from labkit.compare import inputs_untouched
from labkit.exercises.lab14.hierarchical import OnNodes
from labkit.oracles.lab14.sums import messages_only
from labkit.spec import Budget, Hint, Observation, Oracle, Tolerance

CLOSE = {"rtol": 1e-5, "atol": 0.0}
"""Nothing cancels in these sums: a dozen float32 roundings stay below 1e-6 of them, in whichever order."""
ROUNDED = 0.02
"""Relative. A dozen roundings to bfloat16 stay below it; each rank's number is more of a sum over a dozen ranks."""


def total(tree: dict, ranks: Sequence[int]) -> Tensor:
    """The sum over some of the ranks, in float64."""
    return torch.stack([tree["ranks"][rank]["x"].double() for rank in ranks]).sum(0)


def expect(case: OnNodes, tree: dict) -> dict[str, Any]:
    """The sum over all ranks, on every rank."""
    out = total(tree, range(case.n_ranks)).to(getattr(torch, case.dtype))
    return {"ranks": [{"out": out} for _ in range(case.n_ranks)]}


def same_bits(run: Observation) -> str | None:
    """All ranks hold the same bits: replicas that differ in the last one drift apart."""
    first, *others = [part["out"] for part in run.got["ranks"]]
    for rank, out in enumerate(others, start=1):
        if not torch.equal(first, out):
            return f"ranks 0 and {rank} do not have the same bits"
    return None


same_bits.hint = (
    "Let each piece of the sum be added up once, by one rank, and let the others copy it. Two ranks that add the same "
    "numbers in another order round differently."
)


def least_bytes(case: OnNodes, tree: dict) -> int:
    """2(N-1)/N S from each of N nodes; S rounded up to equal pieces for all ranks."""
    n_nodes, piece = len(case.nodes), math.ceil(case.size / case.n_ranks)
    return 2 * (n_nodes - 1) * len(case.nodes[0]) * piece * getattr(torch, case.dtype).itemsize


def outs(got: dict) -> list[Tensor]:
    """What each rank has, as float64."""
    return [part["out"].double() for part in got["ranks"]]


def is_sum_over(ranks_of: Callable[[OnNodes, int], Sequence[int]]) -> Callable[[OnNodes, dict, dict], bool]:
    """Every rank has the sum over the ranks that `ranks_of` names for it."""
    return lambda case, tree, got: all(
        torch.allclose(out, total(tree, ranks_of(case, rank)), **CLOSE) for rank, out in enumerate(outs(got))
    )


def node_of(case: OnNodes, rank: int) -> tuple[int, ...]:
    """The ranks on the rank's own node."""
    return next(ranks for ranks in case.nodes if rank in ranks)


def same_place(case: OnNodes, rank: int) -> list[int]:
    """The ranks that have the rank's place on the other nodes, and itself."""
    return [ranks[node_of(case, rank).index(rank)] for ranks in case.nodes]


def is_right(case: OnNodes, tree: dict, got: dict) -> list[Tensor]:
    """Of every rank: which elements are right."""
    right = total(tree, range(case.n_ranks))
    return [torch.isclose(out, right, **CLOSE) for out in outs(got)]


def drops_the_rest(case: OnNodes, tree: dict, got: dict) -> bool:
    """All is right but what is left when the numbers are cut into equal pieces."""
    n_right = [int((~right).int().argmax()) if not right.all() else case.size for right in is_right(case, tree, got)]
    return min(n_right) > 0 and 0 < case.size - min(n_right) < case.n_ranks


def multiple(case: OnNodes, tree: dict, got: dict) -> float:
    """By what the sum is multiplied in what came back."""
    right = total(tree, range(case.n_ranks))
    factor = float((outs(got)[0] @ right) / (right @ right))
    return factor if torch.allclose(outs(got)[0], factor * right, **CLOSE) else math.nan


def off_by(case: OnNodes, tree: dict, got: dict) -> Tensor:
    """Of every rank: how far each element is from the sum, in units of the sum."""
    right = total(tree, range(case.n_ranks))
    return torch.stack(outs(got)) / right - 1


def rounded(case: OnNodes, tree: dict, got: dict) -> bool:
    """Some elements are wrong, and all are near the sum, as in a dtype of fewer digits."""
    is_wrong = not all(bool(right.all()) for right in is_right(case, tree, got))
    return is_wrong and bool((off_by(case, tree, got).abs() < ROUNDED).all())


def counted_twice(case: OnNodes, tree: dict, got: dict) -> bool:
    """Some element is more than the sum, although all ranks have numbers of the same sign there."""
    is_float = getattr(torch, case.dtype).is_floating_point
    return is_float and bool((off_by(case, tree, got) > ROUNDED).any())


def own_part_only(case: OnNodes, tree: dict, got: dict) -> bool:
    """Each rank has the sum in one of the node's parts, the one of its place, and not in the others."""
    per_node = len(case.nodes[0])
    parts = [right.tensor_split(per_node) for right in is_right(case, tree, got)]
    places = [node_of(case, rank).index(rank) for rank in range(case.n_ranks)]
    return per_node > 1 and all(
        bool(part.all()) == (number == place)
        for place, row in zip(places, parts, strict=True)
        for number, part in enumerate(row)
    )


HIERARCHICAL = Oracle(
    id="14-hierarchical",
    expect=expect,
    judge=(inputs_untouched, same_bits, messages_only),
    tolerance=Tolerance(**CLOSE),
    budgets=(
        Budget(
            "bytes_across",
            least_bytes,
            "Only the sum of a whole node has to leave it, and `nodes` says who is on which. First add up within the "
            "node; then let the ranks in one place add up their part in a ring, as pieces, not by way of one of them.",
        ),
        Budget(
            "rounds_across",
            lambda case, tree: 2 * (len(case.nodes) - 1),
            "N - 1 rounds between the nodes add up and N - 1 hand round. Let all parts of the node's sum travel in the "
            "same rounds, not one part after the other.",
            "rounds",
        ),
    ),
    diagnose=(
        Hint(
            lambda case, tree, got: any(not out.any() for out in outs(got)),
            "Zeros came back: was the tensor that was received ever added to what the rank had, or copied into it?",
        ),
        Hint(
            is_sum_over(lambda case, rank: (rank,)),
            "Every rank has what it came with. Is the result written into the tensor that is returned?",
        ),
        Hint(
            lambda case, tree, got: len(case.nodes) > 1 and is_sum_over(node_of)(case, tree, got),
            "That is the sum over each rank's own node. What has to travel between the nodes is the piece that the "
            "rank has complete after the reduce-scatter.",
        ),
        Hint(
            lambda case, tree, got: len(case.nodes[0]) > 1 and is_sum_over(same_place)(case, tree, got),
            "That is the sum over the ranks in one place of each node: the other ranks of the nodes are missing.",
        ),
        Hint(
            lambda case, tree, got: len({bool(right.all()) for right in is_right(case, tree, got)}) == 2,
            "Some ranks have the whole sum and others do not: at the end it has to go to all ranks of the node.",
        ),
        Hint(
            lambda case, tree, got: math.isclose(multiple(case, tree, got), 1 / case.n_ranks, rel_tol=1e-3),
            "That is the mean. Asked for is the sum.",
        ),
        Hint(
            lambda case, tree, got: multiple(case, tree, got) > 1.5,
            "That is a multiple of the sum: something is added up a second time after it was complete.",
        ),
        Hint(
            drops_the_rest,
            "The end of the tensor is wrong: the number of elements need not be a multiple of the number of ranks. "
            "`tensor_split` makes pieces that hold all of them.",
        ),
        Hint(
            rounded,
            "The sum is nearly right, as if it had been rounded on the way. Send and add up in the dtype of x.",
        ),
        Hint(
            counted_twice,
            "In some piece a rank's numbers are counted twice. What an all-gather brings is complete: put it in the "
            "place of what is there instead of adding it.",
        ),
        Hint(
            own_part_only,
            "Each rank has the sum in its own part of the tensor and nowhere else. At the end the ranks of a node "
            "gather one another's parts.",
        ),
        Hint(
            lambda case, tree, got: not all(right.all() for right in is_right(case, tree, got)),
            "Some piece was sent on before it was whole. After a reduce-scatter each rank has exactly one piece "
            "complete: is it the one that travels next, and the one that the all-gather starts with?",
        ),
    ),
)
