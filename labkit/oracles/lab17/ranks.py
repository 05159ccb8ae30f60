"""Lab 17: what its oracles share: calls and bytes of a cut layer, and mistakes that are played and compared as a whole.

A result is {"ranks": [{"y": [...], "x": [...], "shapes": {...}, "grads": {...}}, ...]}, as
`labkit.exercises.lab17.layers.run_layer` returns it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare, sent_around
from labkit.exercises.lab17.layers import BACKWARD, BUILT, FORWARD
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Observation, Tolerance

CLOSE = Tolerance(atol=3e-5, rtol=2e-4)
"""float32 sums over columns, tokens and ranks in another order."""
ROOM_BYTES = 2**19
"""For counters, and for what Python itself holds."""

SHAPES = "mat1 and mat2 shapes cannot be multiplied"
WHICH_WAY = (
    "F.linear(x, w) multiplies by the transpose of w: a rank's columns of the result are *rows* of w (dim=0). The "
    "matrix at the end meets these columns, so of that one a rank keeps *columns* (dim=1)."
)
"""Where a product of PyTorch's is refused, whose text is SHAPES in part."""

Found = dict[str, Any]
"""What one rank has."""


MOST_MICRO_BATCHES = 4


def places_of(parameters: Sequence[str]) -> dict[str, str]:
    """How the parts of a rank's result are called: `{"x": "gradient of x", "grads.w_k": "gradient of w_k", ...}`."""
    places = {"x": "gradient of x", "y": "output"}
    for at in range(MOST_MICRO_BATCHES):
        places |= {f"x.{at}": f"gradient of x, micro-batch {at}", f"y.{at}": f"output, micro-batch {at}"}
    places |= {f"grads.{name}": f"gradient of {name}" for name in parameters}
    places |= {f"shapes.{name}.{dim}": f"length of dimension {dim} of {name}" for name in parameters for dim in (0, 1)}
    return places | {f"shapes.{name}": f"shape of {name}" for name in parameters}


def all_reduce_bytes(n_elements: int, n_ranks: int) -> int:
    """What a rank sends at most in an all-reduce of float32: a ring of chunks, rounded up."""
    return 4 * 2 * (n_ranks - 1) * -(-n_elements // n_ranks)


def calls_each_way(
    forward: Callable[[Any], int], backward: Callable[[Any], tuple[int, int]]
) -> Callable[[Observation], str | None]:
    """The property that each pass has so many collective calls, and the construction none. One rank may do as it likes.

    forward: case -> calls of a micro-batch. backward: the fewest and the most.
    """

    def holds(run: Observation) -> str | None:
        case = run.case
        once, back = (forward(case),) * 2, backward(case)
        wanted = [(BUILT, (0, 0))] + [(FORWARD, once), (BACKWARD, back)] * case.n_micro
        if [moment.label for moment in run.moments] != [label for label, _ in wanted]:
            return "the ranks did not come by the moments that were to be marked, in their order"
        if case.n_ranks == 1:
            return None
        before = [0] * case.n_ranks
        for moment, (label, (least, most)) in zip(run.moments, wanted):
            for rank, (called, earlier) in enumerate(zip(moment.collectives, before)):
                if not least <= called - earlier <= most:
                    where = label.removeprefix("after ").replace("construction", "the construction")
                    right = str(most) if least == most else f"{least} to {most}"
                    return f"{where}: rank {rank} called {called - earlier} collectives, not {right}"
            before = list(moment.collectives)
        return None

    return holds


def least_all_reduce_bytes(n_elements: int, n_ranks: int) -> int:
    """What all ranks together send at least in an all-reduce of float32: all but one give, and all but one get."""
    return 4 * 2 * (n_ranks - 1) * n_elements


TOO_LITTLE = (
    "The calls are as many as they should be, but too little is sent in them: what a pass needs from other ranks has "
    "to travel in that pass."
)


def sent_each_way(
    forward: Callable[[Any], int], backward: Callable[[Any], int], hint: str = TOO_LITTLE
) -> Callable[[Observation], str | None]:
    """The property that each pass sends what it has to: who halts too early or too late for a moment has not.

    forward, backward: case -> the fewest bytes of all ranks together in that pass of a micro-batch.
    """

    def expected(run: Observation) -> list[tuple[int, int]]:
        passes = [0] + [forward(run.case), backward(run.case)] * run.case.n_micro
        by_then = list(accumulate(passes))
        return [(sent, by_then[-1] - sent) for sent in by_then]

    return sent_around(expected, hint)


def memory_budgets(held: Callable[[Any], int], most_at_once: Callable[[Any], int]) -> tuple[Budget, Budget]:
    """What a rank may hold once the layer is made, and at any time after that. held, most_at_once: run -> bytes."""
    return (
        Budget(
            "held_bytes",
            held,
            "After the construction a rank holds more than its parts. A slice is a view that keeps the whole weight "
            "alive: clone it.",
            at=BUILT,
        ),
        Budget(
            "peak_bytes",
            most_at_once,
            "At some moment a rank holds more than two copies of the whole weights, or many large activations.",
        ),
    )


def same_bits(run: Observation) -> str | None:
    """A property: the output, which every rank has whole, has the same bits on all of them."""
    first, *others = (one["y"] for one in run.got["ranks"])
    for rank, other in enumerate(others, 1):
        if not all(torch.equal(a, b) for a, b in zip(first, other, strict=True)):
            return f"the output of rank {rank} has other bits than that of rank 0"
    return None


same_bits.hint = (
    "Ranks that hold copies of a tensor must hold equal bits, or they drift apart. An all-reduce gives all ranks the "
    "same bits; sums that each rank adds up in an order of its own do not."
)


def calls_of(run: Observation, label: str, rank: int = 0) -> int:
    """The collectives that a rank called between the first moment of this name and the one before."""
    labels = [moment.label for moment in run.moments]
    place = labels.index(label)
    before = run.moments[place - 1].collectives[rank] if place else 0
    return run.moments[place].collectives[rank] - before


def too_many_calls(label: str, wanted: Callable[[Any], int]) -> Callable[[CaseRun], Any]:
    """A hint's condition: right values, and more calls than wanted(case) up to the moment. One rank cannot tell."""

    def when(run: CaseRun) -> Any:
        if run.case.n_ranks == 1:
            return CANNOT_TELL
        return calls_of(run, label) > wanted(run.case) and values_are_right(run)

    return when


def values_are_right(run: CaseRun) -> bool:
    return compare(run.expected, run.got, CLOSE) is None


def played(
    change: Callable[[CaseRun, int, Found], Found],
    only: Sequence[str] = ("y", "x", "shapes", "grads"),
    close: Callable[[CaseRun], Tolerance] = lambda run: CLOSE,
) -> Callable[[CaseRun], Any]:
    """A hint's condition: the result is what a mistake makes of it. CANNOT_TELL where it changes nothing.

    change: (run, rank, what the rank should have) -> what it has instead of some of it. only: what is looked at.
    """

    def when(run: CaseRun) -> Any:
        right, got = (_parts(tree["ranks"], only) for tree in (run.expected, run.got))
        changed = [one | change(run, rank, one) for rank, one in enumerate(run.expected["ranks"])]
        wrong = _parts(changed, only)
        if compare(right, wrong, close(run)) is None:
            return CANNOT_TELL
        return compare(wrong, got, close(run)) is None

    return when


def _parts(ranks: Sequence[Found], only: Sequence[str]) -> list[Found]:
    return [{name: one[name] for name in only} for one in ranks]


def times(tensors: Any, factor: float) -> Any:
    """Everything in it multiplied by a factor."""
    if isinstance(tensors, dict):
        return {name: times(one, factor) for name, one in tensors.items()}
    if isinstance(tensors, list):
        return [times(one, factor) for one in tensors]
    return None if tensors is None else tensors * factor


def shapes_are(wrong: Callable[[CaseRun, int], dict[str, Sequence[int]]]) -> Callable[[CaseRun], Any]:
    """A hint's condition: parameters have these shapes, by rank; of those that are not named nothing is said."""

    def when(run: CaseRun) -> Any:
        told = [(wrong(run, rank), one["shapes"]) for rank, one in enumerate(run.expected["ranks"])]
        if all(list(shape) == right[name] for shapes, right in told for name, shape in shapes.items()):
            return CANNOT_TELL
        got = [one["shapes"] for one in run.got["ranks"]]
        return all(list(shape) == one[name] for (shapes, _), one in zip(told, got) for name, shape in shapes.items())

    return when


def cut(tensor: Tensor, dim: int, rank: int, n_ranks: int) -> Tensor:
    """A rank's part, as `tensor_split` cuts."""
    return tensor.tensor_split(n_ranks, dim)[rank]
