"""Lab 18's schedules: what they are judged by is what PyTorch's own take, and the best is the best there is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from grading.demo.examples import example
from grading.hidden.lab18.interleaved import looped
from grading.hidden.lab18.pipes import pipes
from grading.hidden.lab18.shortest import shortest
from grading.hidden.lab18.zero_bubble import BEST, NO_FIXED_ORDER, NOT_WHAT_BEGINS_FIRST, uneven
from labkit.exercises.lab18.interleaved import Looped, play_looped, run_looped
from labkit.exercises.lab18.orders import BadEntry, Pipe, entries_of, play, run_of
from labkit.exercises.lab18.zero_bubble import ZERO_BUBBLE, Split, play_split, run_split, uniform
from labkit.material.lab18_schedules import running_ahead, with_warm_up, without_reserve
from labkit.oracles.lab18.gpipe import least
from labkit.oracles.lab18.looped_passes import due as due_looped
from labkit.oracles.lab18.looped_passes import may_keep
from labkit.oracles.lab18.one_f_one_b import due, may_hold, reference
from labkit.pipeline import Action, ScheduleError
from labkit.torch_oracles import schedule_ops
from labkit.tree import Opaque
from tests.exercises.harness import answers_in, solution_of

pytestmark = pytest.mark.lab("18")
SEEDS = range(4)


@cache
def solution(exercise_id: str, name: str) -> Callable:
    return answers_in(exercise_id, solution_of(exercise_id))[name]


@pytest.mark.slow
def test_gpipe_takes_what_the_formula_says_whatever_the_stages_and_messages() -> None:
    for seed in SEEDS:
        for case in pipes(random.Random(seed)):
            taken = play(schedule_ops("GPipe", case.n_stages, case.n_microbatches), case).makespan
            assert taken == pytest.approx(least(case)) == run_of(solution("18-gpipe", "gpipe"), case).makespan


@pytest.mark.slow
def test_pytorch_s_1f1b_holds_what_it_may() -> None:
    for seed in SEEDS:
        for case in pipes(random.Random(seed)):
            held = play(reference(case.n_stages, case.n_microbatches), case).peak_live
            assert list(held) == [may_hold(case, stage) for stage in range(case.n_stages)]
            mine = run_of(solution("18-one-f-one-b", "one_f_one_b"), case)
            assert mine.makespan == pytest.approx(due(case)) and mine.peak_live == held


@pytest.mark.slow
def test_the_bubble_of_interleaved_stages_is_pytorch_s() -> None:
    for seed in SEEDS:
        for case in looped(random.Random(seed)):
            mine = run_looped(solution("18-interleaved", "interleaved"), case)
            assert mine.makespan == pytest.approx(due_looped(case))
            assert all(kept <= may_keep(case, rank) for rank, kept in enumerate(mine.peak_live))
            if case.n_chunks > 1 and case.n_ranks > 1:
                orders = schedule_ops("Interleaved1F1B", case.n_ranks, case.n_microbatches, case.n_chunks)
                assert play_looped(orders, case).makespan == pytest.approx(mine.makespan)
            if not case.transfer:
                share = (case.n_ranks - 1) / (case.n_chunks * case.n_microbatches + case.n_ranks - 1)
                assert mine.bubble == pytest.approx(share)


def test_the_figures_that_the_notebook_quotes() -> None:
    gpipe, one_f_one_b = solution("18-gpipe", "gpipe"), solution("18-one-f-one-b", "one_f_one_b")
    interleaved, zero_bubble = solution("18-interleaved", "interleaved"), solution("18-zero-bubble", "zero_bubble")
    both = [run_of(order, Pipe(4, 32)) for order in (gpipe, one_f_one_b)]
    assert [run.makespan for run in both] == [105, 105] and both[0].busy[0] == 96
    assert [run.peak_live for run in both] == [(32,) * 4, (4, 3, 2, 1)]
    assert run_of(gpipe, Pipe(8, 63)).bubble == pytest.approx(0.1)
    slow = Pipe(4, 32, transfer=0.5)
    assert [run_of(order, slow).makespan for order in (gpipe, one_f_one_b, running_ahead(one_f_one_b))] == [
        108,
        131,
        108,
    ]
    assert run_of(running_ahead(one_f_one_b), slow).peak_live == (7, 5, 3, 1)
    assert [run_looped(interleaved, Looped(2, v, 8)).n_transfers for v in (1, 4)] == [16, 7 * 16]
    runs = [run_looped(order, Looped(4, 2, 32)) for order in (interleaved, without_reserve(interleaved))]
    assert [(run.makespan, run.peak_live[0]) for run in runs] == [(201, 11), (201, 8)]
    assert run_of(one_f_one_b, Pipe(4, 8)).idle == (9,) * 4
    split = run_split(zero_bubble, uniform(4, 8))
    assert split.idle == (3,) * 4 and split.peak_live == (4,) * 4


def test_with_twice_the_memory_no_stage_waits_in_the_middle() -> None:
    """ZB-H2, of which the notebook says so."""
    p, m = 4, 12
    orders: list[list[Action]] = [[] for _ in range(p)]
    for stage, order in enumerate(orders):
        ahead, late = 2 * (p - stage) - 1, 2 * stage
        entries = [("F", i) for i in range(ahead)]
        for i in range(m):
            entries += [("I", i), ("W", i - late), ("F", ahead + i)]
        entries += [("W", i) for i in range(m - late, m)]
        order += [Action(kind, stage, i) for kind, i in entries if 0 <= i < m]
    run = play_split(orders, replace(uniform(p, m), memory=2 * p - 1))
    ends = [(events[0].start, run.makespan - events[-1].end) for events in run.by_rank]
    assert ends == [(stage, p - 1 - stage) for stage in range(p)] and run.idle == (p - 1,) * p


def test_another_warm_up_keeps_all_passes() -> None:
    order = [("F", 0), ("F", 1), ("B", 0), ("F", 2), ("B", 1), ("B", 2)]
    assert with_warm_up(order, 1) == order
    assert with_warm_up(order, 2) == [("F", 0), ("F", 1), ("F", 2), ("B", 0), ("B", 1), ("B", 2)]
    assert sorted(with_warm_up(order, 9)) == sorted(order)


@pytest.mark.parametrize("case", [case for case in ZERO_BUBBLE.public if not case.is_uniform])
def test_the_best_of_public_cases_is_found_again(case: Split) -> None:
    assert shortest(case) == case.best


def test_the_best_of_hidden_cases_is_found_again() -> None:
    assert [shortest(uneven(seed, 0.0)) for seed in range(len(BEST))] == list(BEST)


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("the_same_order_whatever_it_takes", NO_FIXED_ORDER),
        ("takes_what_is_there_first", NOT_WHAT_BEGINS_FIRST),
        ("takes_what_is_there_first_where_stages_differ", NOT_WHAT_BEGINS_FIRST),
    ],
)
def test_simple_rules_are_too_slow_for_the_hidden_cases_that_are_for_them(name: str, seeds: tuple[int, ...]) -> None:
    zero_bubble = answers_in("18-zero-bubble", example("wrong", f"18-zero-bubble/{name}").source)["zero_bubble"]
    for case in (uneven(seed, BEST[seed]) for seed in seeds):
        assert sum(run_split(zero_bubble, case).idle) > 1.05 * (case.n_stages * case.best - case.busy) + 1e-9


def test_the_published_order_is_the_shortest_where_all_passes_are_alike() -> None:
    zero_bubble = solution("18-zero-bubble", "zero_bubble")
    for n_stages in range(1, 7):
        for m in (n_stages, n_stages + 1, 4 * n_stages):
            case = uniform(n_stages, m)
            assert run_split(zero_bubble, case).makespan == case.best == shortest(case)


@pytest.mark.full("answers")
def test_the_solution_is_good_enough_for_every_hidden_case() -> None:
    zero_bubble = solution("18-zero-bubble", "zero_bubble")
    for seed, best in enumerate(BEST):
        case = uneven(seed, best)
        idle = sum(run_split(zero_bubble, case).idle)
        assert case.n_stages * best - case.busy - 1e-9 <= idle <= 1.05 * (case.n_stages * best - case.busy) + 1e-9


def every_order(n_stages: int, m: int) -> Iterator[list[list[Action]]]:
    """All orders that respect a stage's own needs, each micro-batch in turn."""

    def of_stage(stage: int, done: tuple[int, int, int]) -> Iterator[list[Action]]:
        if done == (m, m, m):
            yield []
        for place, kind in enumerate("FIW"):
            if done[place] < (m if kind == "F" else done[place - 1]):
                more = tuple(n + (at == place) for at, n in enumerate(done))
                yield from ([Action(kind, stage, done[place]), *rest] for rest in of_stage(stage, more))

    def of_all(stage: int) -> Iterator[list[list[Action]]]:
        if stage == n_stages:
            yield []
            return
        for order in of_stage(stage, (0, 0, 0)):
            yield from ([order, *rest] for rest in of_all(stage + 1))

    return of_all(0)


@pytest.mark.full("answers")
@pytest.mark.parametrize("memory", [1, 2, 3])
def test_no_order_at_all_is_shorter(memory: int) -> None:
    """Two stages and three micro-batches, played one by one: 42 orders of each stage."""
    for seed in range(3):
        rng = random.Random(seed)
        times = [tuple(rng.randint(1, 8) / 2 for _ in range(2)) for _ in range(3)]
        case = Split(*times, 3, memory, best=0.0)
        taken = []
        for orders in every_order(2, 3):
            try:
                taken.append(play_split(orders, case).makespan)
            except ScheduleError as error:
                assert error.kind in ("memory", "deadlock")
        assert min(taken) == shortest(case)


def test_an_entry_that_is_none_is_shown() -> None:
    for order, text in (
        (Opaque("generator"), r"gpipe returned something of type generator: it has to be a list"),
        (None, r"gpipe returned None: it has to be a list, and each entry a pair such as \('F', 0\)"),
        (["F0"], "entry 0 is 'F0'"),
        ([("F", 0.5)], r"entry 0 is \('F', 0.5\)"),
        ([["B", True]], r"entry 0 is \('B', True\)"),
        ([("W", 0)], "with 'F' or 'B' first"),
    ):
        with pytest.raises(BadEntry, match=text):
            entries_of(order, ("F", "B"), "gpipe")
    (entry,) = entries_of([["F", np.int64(1)]], ("F", "B"), "gpipe")
    assert entry == ("F", 1) and type(entry[1]) is int
