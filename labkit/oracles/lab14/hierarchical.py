"""Lab 14: what is true of an all-reduce over nodes, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from labkit.compare import inputs_untouched
from labkit.exercises.lab14.hierarchical import OnNodes
from labkit.oracles.lab14.sums import ERRORS, messages_only
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Oracle, Tolerance

CLOSE = {"rtol": 1e-5, "atol": 0.0}
"""Nothing cancels in these sums: a dozen float32 roundings stay below 1e-6 of them, in whichever order."""
ROUNDED = 0.02
"""Relative. A dozen roundings to bfloat16 stay below it; each rank's number is more of a sum over a dozen ranks."""


def total(tree: dict, ranks: Sequence[int]) -> Tensor:
    """The sum over some of the ranks, in float64."""
    return torch.stack([tree["ranks"][rank]["x"].double() for rank in ranks]).sum(0)


def expect(run: CaseRun[OnNodes]) -> dict[str, Any]:
    """The sum over all ranks, on every rank."""
    out = total(run.tree, range(run.case.n_ranks)).to(getattr(torch, run.case.dtype))
    return {"ranks": [{"out": out} for _ in range(run.case.n_ranks)]}


def same_bits(run: CaseRun) -> str | None:
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


def least_bytes(run: CaseRun[OnNodes]) -> int:
    """2(N-1)/N S from each of N nodes; S rounded up to equal pieces for all ranks."""
    case = run.case
    n_nodes, piece = len(case.nodes), math.ceil(case.size / case.n_ranks)
    return 2 * (n_nodes - 1) * len(case.nodes[0]) * piece * getattr(torch, case.dtype).itemsize


def outs(got: dict) -> list[Tensor]:
    """What each rank has, as float64."""
    return [part["out"].double() for part in got["ranks"]]


def is_sum_over(ranks_of: Callable[[OnNodes, int], Sequence[int]]) -> Callable[[CaseRun[OnNodes]], bool]:
    """Every rank has the sum over the ranks that `ranks_of` names for it."""
    return lambda run: all(
        torch.allclose(out, total(run.tree, ranks_of(run.case, rank)), **CLOSE)
        for rank, out in enumerate(outs(run.got))
    )


def node_of(case: OnNodes, rank: int) -> tuple[int, ...]:
    """The ranks on the rank's own node."""
    return next(ranks for ranks in case.nodes if rank in ranks)


def same_place(case: OnNodes, rank: int) -> list[int]:
    """The ranks that have the rank's place on the other nodes, and itself."""
    return [ranks[node_of(case, rank).index(rank)] for ranks in case.nodes]


def is_right(run: CaseRun[OnNodes]) -> list[Tensor]:
    """Of every rank: which elements are right."""
    right = total(run.tree, range(run.case.n_ranks))
    return [torch.isclose(out, right, **CLOSE) for out in outs(run.got)]


def drops_the_rest(run: CaseRun[OnNodes]) -> Any:
    """All is right but what is left when the numbers are cut into equal pieces."""
    if run.case.size < run.case.n_ranks:
        return CANNOT_TELL
    n_right = [int((~right).int().argmax()) if not right.all() else run.case.size for right in is_right(run)]
    return min(n_right) > 0 and 0 < run.case.size - min(n_right) < run.case.n_ranks


def multiple(run: CaseRun[OnNodes]) -> float:
    """By what the sum is multiplied in what came back."""
    right = total(run.tree, range(run.case.n_ranks))
    factor = float((outs(run.got)[0] @ right) / (right @ right))
    return factor if torch.allclose(outs(run.got)[0], factor * right, **CLOSE) else math.nan


def own_node_twice(run: CaseRun[OnNodes]) -> bool:
    """Every rank has the sum over all ranks and that over its own node once more."""
    case = run.case
    every = total(run.tree, range(case.n_ranks))
    return all(
        torch.allclose(out, every + total(run.tree, node_of(case, rank)), **CLOSE)
        for rank, out in enumerate(outs(run.got))
    )


def off_by(run: CaseRun[OnNodes]) -> Tensor:
    """Of every rank: how far each element is from the sum, in units of the sum."""
    right = total(run.tree, range(run.case.n_ranks))
    return torch.stack(outs(run.got)) / right - 1


def rounded(run: CaseRun[OnNodes]) -> bool:
    """Some elements are wrong, and all are near the sum, as in a dtype of fewer digits."""
    is_wrong = not all(bool(right.all()) for right in is_right(run))
    return is_wrong and bool((off_by(run).abs() < ROUNDED).all())


def counted_twice(run: CaseRun[OnNodes]) -> Any:
    """Some element is more than the sum, although all ranks have numbers of the same sign there."""
    if not getattr(torch, run.case.dtype).is_floating_point:
        return CANNOT_TELL
    return bool((off_by(run) > ROUNDED).any())


def own_part_only(run: CaseRun[OnNodes]) -> bool:
    """Each rank has the sum in one of the node's parts, the one of its place, and not in the others."""
    per_node = len(run.case.nodes[0])
    parts = [right.tensor_split(per_node) for right in is_right(run)]
    places = [node_of(run.case, rank).index(rank) for rank in range(run.case.n_ranks)]
    return per_node > 1 and all(
        bool(part.all()) == (number == place)
        for place, row in zip(places, parts, strict=True)
        for number, part in enumerate(row)
        if len(part)
    )


HIERARCHICAL = Oracle(
    id="14-hierarchical",
    call=lambda run: (
        f"hierarchical_all_reduce(comm, x, {[list(ranks) for ranks in run.case.nodes]}), x of {run.case.dtype} with "
        f"shape ({run.case.size},)"
    ),
    expect=expect,
    judge=(inputs_untouched, same_bits, messages_only),
    errors={
        **ERRORS,
        "is not in list": "The numbers of ranks say nothing about nodes and places: [[0, 2], [1, 3]] is possible. "
        "Search `nodes` for the list that holds comm.rank; its place in that list is also the place of its peers in "
        "theirs.",
        "tuple index out of range": "There are fewer pieces than the ring has ranks. Cut what goes around a ring into "
        "as many pieces as there are ranks in the list that it goes around (torch.tensor_split, since torch.chunk may "
        "return fewer), and take indices modulo that number.",
        "a message needs two ranks": "The numbers in `nodes` are ranks. A place in one of these lists is no rank: look "
        "up the rank that stands there.",
    },
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
            lambda run: 2 * (len(run.case.nodes) - 1),
            "N - 1 rounds between the nodes add up and N - 1 hand round. Let all parts of the node's sum travel in the "
            "same rounds, not one part after the other.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: any(not out.any() for out in outs(run.got)),
            "Zeros came back: was the tensor that was received ever added to what the rank had, or copied into it?",
        ),
        Hint(
            is_sum_over(lambda case, rank: (rank,)),
            "Every rank has what it came with. Is the result written into the tensor that is returned?",
        ),
        Hint(
            lambda run: len(run.case.nodes) > 1 and is_sum_over(node_of)(run),
            "That is the sum over each rank's own node. What has to travel between the nodes is the piece that the "
            "rank has complete after the reduce-scatter.",
        ),
        Hint(
            lambda run: len(run.case.nodes[0]) > 1 and is_sum_over(same_place)(run),
            "That is the sum over the ranks in one place of each node: the other ranks of the nodes are missing.",
        ),
        Hint(
            lambda run: len({bool(right.all()) for right in is_right(run)}) == 2,
            "Some ranks have the whole sum and others do not: at the end it has to go to all ranks of the node.",
        ),
        Hint(
            lambda run: math.isclose(multiple(run), 1 / run.case.n_ranks, rel_tol=1e-3),
            "That is the mean. Asked for is the sum.",
        ),
        Hint(
            lambda run: multiple(run) > 1.5,
            "That is a multiple of the sum: something is added up a second time after it was complete.",
        ),
        Hint(
            own_node_twice,
            "The rank's own node is in the sum twice. What goes around between the nodes contains it already: add what "
            "comes from the other nodes only.",
        ),
        Hint(
            drops_the_rest,
            "The end of the tensor is wrong: not every number of elements is a multiple of the number of ranks. "
            "`tensor_split` makes pieces that hold all of them.",
        ),
        Hint(
            rounded,
            "The sum is nearly right, as if it had been rounded on the way. Send and add up in the dtype of x.",
        ),
        Hint(
            counted_twice,
            "In some piece a rank's numbers are counted twice. Add up within a node once, and between the nodes once; "
            "what an all-gather brings is complete and replaces what is there.",
        ),
        Hint(
            own_part_only,
            "Each rank has the sum in its own part of the tensor and nowhere else. At the end the ranks of a node "
            "gather one another's parts.",
        ),
        Hint(
            lambda run: not all(right.all() for right in is_right(run)),
            "Some piece was sent on before it was whole. After a reduce-scatter each rank has exactly one piece "
            "complete: is it the one that travels next, and the one that the all-gather starts with?",
        ),
    ),
)
