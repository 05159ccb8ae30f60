"""16-prefetch: the best order is the best there is, and what an order has to be is said of every order that is not."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from grading.hidden.lab16.prefetch import prefetch_cases
from labkit.clock import makespan
from labkit.exercises.lab16.prefetch import KINDS, BadOrder, Blocks, Command, gathers_when_needed, step_ms, timeline
from labkit.oracles.lab16.prefetch_best import best_ms
from labkit.tree import Opaque
from tests.exercises.harness import answers_in, solution_of

pytestmark = pytest.mark.lab("16")


def taken_ms(order: list[Command], case: Blocks) -> float:
    return 1e3 * makespan(timeline(order, case))


def grows(case: Blocks, order: list[Command]) -> Iterator[list[Command]]:
    """The orders that are one command longer and are a step so far; a layer is gathered twice at most."""
    for kind in KINDS:
        for layer in range(case.n_layers):
            longer = [*order, (kind, layer)]
            if longer.count((kind, layer)) > (2 if kind in ("gather", "free") else 1):
                continue
            try:
                timeline(longer, case)
            except BadOrder as error:
                if error.kind != "unfinished":
                    continue
            yield longer


def every_step(case: Blocks, order: list[Command]) -> Iterator[list[Command]]:
    """All training steps that begin so."""
    for longer in grows(case, order):
        try:
            timeline(longer, case)
            yield longer
        except BadOrder:
            yield from every_step(case, longer)


@pytest.mark.full("answers")
@pytest.mark.parametrize("case", [Blocks(2, gather_ms=6.0, reduce_ms=1.0), Blocks(1)])
def test_of_two_layers_no_order_at_all_is_shorter(case: Blocks) -> None:
    assert min(taken_ms(order, case) for order in every_step(case, [])) == pytest.approx(best_ms(case))


@pytest.mark.parametrize(("n_layers", "n"), [(3, 60), (4, 40), pytest.param(6, 10, marks=pytest.mark.slow)])
def test_no_order_by_chance_is_shorter(n_layers: int, n: int) -> None:
    rng = random.Random(n_layers)
    for _ in range(n):
        forward, gather = rng.uniform(1, 9), rng.uniform(1, 9)
        case = Blocks(n_layers, gather, forward, 2 * forward, gather * rng.randint(1, 2))
        best, order = best_ms(case), []
        while True:
            try:
                taken = taken_ms(order, case)
                break
            except BadOrder:
                choices = list(grows(case, order))
                # One that frees what it cannot gather a third time has come to no end.
                if not choices:
                    taken = best
                    break
                order = rng.choice(choices)
        assert taken >= best - 1e-9


@pytest.mark.slow
def test_the_best_order_is_the_solution_s_for_every_network() -> None:
    fsdp_order = answers_in("16-prefetch", solution_of("16-prefetch"))["fsdp_order"]
    for seed in range(20):
        for case in prefetch_cases(random.Random(seed)):
            assert taken_ms(fsdp_order(case.n_layers), case) == pytest.approx(best_ms(case))


def test_what_stays_visible_is_the_first_gather_and_the_last_reduction() -> None:
    """The folded answer of the notebook, also of 100 layers."""
    fsdp_order = answers_in("16-prefetch", solution_of("16-prefetch"))["fsdp_order"]
    assert step_ms(gathers_when_needed) == pytest.approx(88) and best_ms(Blocks()) == pytest.approx(55)
    for n_layers in (4, 100):
        assert step_ms(fsdp_order, n_layers) - 12 * n_layers == pytest.approx(7)


@pytest.mark.parametrize(
    ("order", "kind", "text"),
    [
        (None, "form", "fsdp_order returned None: it has to be a list of pairs"),
        (["gather 0"], "form", "entry 0 is 'gather 0': it has to be a pair"),
        ([("gather", 2)], "layer", "entry 0 is ('gather', 2)"),
        ([("fetch", 0)], "form", "entry 0 is ('fetch', 0)"),
        ([("gather", True)], "form", "entry 0 is ('gather', True)"),
        ([("gather", 0)] * 2, "crowded", "entry 1, ('gather', 0): layer 0 is whole already"),
        (Opaque("generator"), "form", "fsdp_order returned something of type generator: it has to be a list of pairs"),
        ([("forward", 0)], "not gathered", "entry 0, ('forward', 0): layer 0 was never gathered"),
        (
            [("gather", 0), ("free", 0), ("forward", 0)],
            "freed early",
            "entry 2, ('forward', 0): layer 0 was freed before",
        ),
        (
            [entry for layer in (0, 1) for entry in (("gather", layer), ("forward", layer), ("free", layer))]
            + [("backward", 1)],
            "not whole",
            "entry 6, ('backward', 1): layer 1 is not whole",
        ),
        ([("gather", 1), ("forward", 1)], "passes", "entry 1, ('forward', 1): ('forward', 0) is next"),
        ([("free", 0)], "free", "entry 0, ('free', 0): layer 0 is not whole"),
        ([("reduce", 0)], "reduce", "entry 0, ('reduce', 0): it comes once, after the backward pass of layer 0"),
        ([], "unfinished", "the list ends without ('forward', 0)"),
        (gathers_when_needed(2)[:-1], "unfinished", "the list ends without ('reduce', 0)"),
        ([*gathers_when_needed(2), ("gather", 1)], "unfinished", "the list ends without ('free', 1)"),
        ([*gathers_when_needed(2), ("forward", 1)], "passes", "entry 14, ('forward', 1): all passes are done"),
    ],
    ids=str,
)
def test_what_is_no_training_step_is_said(order: object, kind: str, text: str) -> None:
    with pytest.raises(BadOrder) as caught:
        timeline(order, Blocks(2))
    assert caught.value.kind == kind and str(caught.value).startswith(text)


def test_a_third_layer_has_no_place() -> None:
    with pytest.raises(BadOrder, match="layers 0 and 1 are still whole, and 2 is the most") as caught:
        timeline([("gather", 0), ("gather", 1), ("gather", 2)], Blocks(3))
    assert caught.value.kind == "crowded"


def test_a_gather_waits_for_the_memory_that_it_writes_to() -> None:
    order = [("gather", 0), ("gather", 1), ("forward", 0), ("free", 0), ("gather", 2), ("forward", 1)]
    case = Blocks(3, gather_ms=1.0, forward_ms=10.0)
    rest = [("forward", 2), ("backward", 2), ("free", 2), ("backward", 1), ("free", 1), ("gather", 0), ("backward", 0)]
    rest += [("free", 0), *(("reduce", layer) for layer in (2, 1, 0))]
    spans = timeline(order + rest, case)
    assert spans["gather", 2, 4].start_s == pytest.approx(11e-3)
