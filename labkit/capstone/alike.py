"""Whether a script does the same at every size and in every step, up to shapes, and shapes grow as the model does.

What is billed is one step without data. So all that is trained has to be what was billed: each of these functions looks
at operations in their order, and raises RuleBroken at the first that differs. Nothing is run here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import isclose, prod

from labkit.capstone.bill import Bill
from labkit.capstone.broken import RuleBroken
from labkit.capstone.cost import Operand, Step
from labkit.capstone.size import Size

MOST_OF_ONE_SIZE = 20_000
"""Elements that a step's operations may work on in tensors that are as large at every size: tables, and the like."""
_EXACTLY, _ROUNDED = 0.03, 0.2
"""How far a shape may be from growing as the model does: between two large sizes, and from the tiny one, where a
remainder shows."""


def check_sizes(full: Bill, other: Bill, where: str) -> None:
    """At another size, and on another card, the same operations on the same dtypes, and as many sequences.

    Tensors that share memory at one size do so at the other, and what shows more elements than there are in its memory
    does, too: else the billion would take less memory, or less time, than the script that is trained.
    """
    if other.sequences != full.sequences:
        text = f"a step takes {full.sequences} sequences in the billion and {other.sequences} {where}"
        raise RuleBroken(text, "tokens")
    for part, ours, theirs in zip(_PARTS, _parts(full), _parts(other), strict=True):
        for listed in (_names, _dtypes):
            if (here := listed(ours)) != (there := listed(theirs)):
                raise RuleBroken(f"{part}{_first_difference(here, there, 'the billion', where)}", "size")
    for part, ours, here, there in zip(_PARTS, _parts(full), full.worked_on, other.worked_on, strict=True):
        if here != there:
            place = next(n for n, pair in enumerate(zip(here, there, strict=True)) if pair[0] != pair[1])
            text = f"{part}operation {place + 1:,}, {ours[place][0]}, works on other tensors' memory in the billion"
            raise RuleBroken(f"{text} than {where}", "size")


def check_growth(small: Bill, middle: Bill, full: Bill) -> None:
    """What an operation works on is larger in a larger model, in the proportion in which something in it is.

    Else a corner of a tensor would be worked on, all of it at the tiny size and hardly any of it at the billion.
    """
    sizes = (small.size, middle.size, full.size)
    for part, *steps in zip(_PARTS, _parts(small), _parts(middle), _parts(full), strict=True):
        of_one_size = 0
        for place, same in enumerate(zip(*steps, strict=True), start=1):
            tensors = list(zip(*(_elements(operation) for operation in same), strict=True))
            grow = [elements for elements in tensors if len(set(elements)) > 1]
            of_one_size += 0 if grow else max((elements[0] for elements in tensors if elements[0] > 1), default=0)
            for elements in grow:
                if not _grows(elements, sizes):
                    tiny, between, billion = (f"{n:,}" for n in elements)
                    text = f"{part}operation {place:,}, {same[0][0]}, works on {tiny} elements at the tiny size"
                    larger = f"{between} at width {middle.size.width} and {billion} in the billion"
                    raise RuleBroken(f"{text}, {larger}: not as the model grows", "size")
        if of_one_size > MOST_OF_ONE_SIZE:
            text = f"{part}operations work on {of_one_size:,} elements of tensors that are no larger in a larger model"
            raise RuleBroken(text, "size")


def check_step(number: int | None, taken: int, operations: Sequence[Step], small: Bill, n_cards: int) -> None:
    """A step of training takes the tokens that are billed, and does what is billed. number: None for `setup`."""
    if number is not None and taken != small.sequences:
        text = f"step {number} of training takes {taken * n_cards} sequences"
        raise RuleBroken(f"{text}; {small.sequences * n_cards} are billed for each", "tokens")
    billed = _parts(small)[0 if number is None else 1 if number == 0 else 2]
    if list(operations) != list(billed):
        where = "when training is set up" if number is None else f"in step {number} of training"
        listed = _shapes if _shapes(billed) != _shapes(operations) else _dtypes
        raise RuleBroken(_first_difference(listed(billed), listed(operations), "the bill", where), "data")


_PARTS = ("setup: ", "the first step: ", "")


def _parts(bill: Bill) -> tuple[Sequence[Step], ...]:
    return bill.prepared, bill.first, bill.operations


def _names(operations: Sequence[Step]) -> list[str]:
    return [name for name, _ in operations]


def _dtypes(operations: Sequence[Step]) -> list[str]:
    return [f"{name} of {', '.join(map(_kind, used))}" for name, used in operations]


def _kind(operand: Operand) -> str:
    _, dtype, repeats = operand
    return str(dtype).removeprefix("torch.") + _EXPANDED * repeats


_EXPANDED = " (expanded)"


def _shapes(operations: Sequence[Step]) -> list[str]:
    return [f"{name} of {' and '.join(map(_form, used))}" for name, used in operations]


def _form(operand: Operand) -> str:
    shape, _, repeats = operand
    return ("×".join(map(str, shape)) or "1") + _EXPANDED * repeats


def _first_difference(ours: Sequence[str], theirs: Sequence[str], here: str, there: str) -> str:
    place = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    if place is None:
        return f"{len(ours):,} operations in {here}, {len(theirs):,} {there}"
    return f"operation {place + 1:,} is {ours[place]} in {here}, and {theirs[place]} {there}"


def _elements(operation: Step) -> list[int]:
    """Of each tensor that goes in."""
    return [prod(shape) for shape, *_ in operation[1]]


@cache
def _grows(elements: tuple[int, int, int], sizes: tuple[Size, Size, Size]) -> bool:
    tiny, between, billion = elements
    return any(
        isclose(billion * middle, between * full, rel_tol=_EXACTLY)
        and isclose(billion * small, tiny * full, rel_tol=_ROUNDED)
        for small, middle, full in _proportions(sizes)
    )


@cache
def _proportions(sizes: tuple[Size, Size, Size]) -> tuple[tuple[float, float, float], ...]:
    """What the tensors of a training are proportional to: products of the model's numbers, and runs of its weights."""
    found = []
    for width, words, length, heads in product((0, 1, 2), (0, 1), (0, 1, 2), (-1, 0, 1)):
        found.append(tuple(s.width**width * s.vocab**words * s.seq_len**length * s.n_heads**heads for s in sizes))
    weights = [_weights(size) for size in sizes]
    n_weights = len(weights[0])
    for first in range(n_weights):
        for last in range(first + 1, n_weights + 1):
            found.append(tuple(sum(of_size[first:last]) for of_size in weights))
    return tuple(dict.fromkeys(found))


def _weights(size: Size) -> list[int]:
    """Elements of each weight, in the model's order."""
    h = size.width
    return [size.vocab * h, size.seq_len * h, *(h, h, 3 * h * h, h * h, 4 * h * h, 4 * h * h) * size.n_layers, h]
