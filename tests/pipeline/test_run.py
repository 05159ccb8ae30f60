"""The schedule executor: PyTorch's schedules and a brute-force simulator agree with it, and what cannot run is said."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.pipeline import Action, Costs, ScheduleError, live_counts, needs, run_schedule
from labkit.torch_oracles import SCHEDULES, schedule_ops
from tests.pipeline.brute_force import tick_by_tick


def one_stage_each(*orders: str) -> list[list[Action]]:
    """ "F0 F1 B0" of stage 0, then of stage 1, ..."""
    return [[Action(text[0], stage, int(text[1:])) for text in order.split()] for stage, order in enumerate(orders)]


GPIPE = one_stage_each("F0 F1 B0 B1", "F0 F1 B0 B1")


def test_two_stages_by_hand() -> None:
    run = run_schedule(GPIPE, Costs.equal(2))
    times = {str(event.action): (event.start, event.end) for event in run.events}
    assert times["F1 on stage 1"] == (2, 3) and times["B0 on stage 1"] == (3, 5) and times["B0 on stage 0"] == (5, 7)
    assert run.makespan == 9 and run.busy == (6, 6) and run.idle == (3, 3)
    assert run.bubble == pytest.approx(1 / 3) and run.bubble_of_ideal == pytest.approx(1 / 2)
    assert run.peak_live == (2, 2) and run.n_transfers == 4
    assert run.live(0) == [(0.0, 0), (0.0, 1), (1.0, 2), (7.0, 1), (9.0, 0)]
    assert run.event_of(Action("B", 0, 1)).end == 9


def test_a_message_takes_its_time_between_ranks_only() -> None:
    assert run_schedule(GPIPE, Costs.equal(2), transfer=0.5).makespan == 10
    on_one = [[Action(kind, stage, 0) for kind, stage in (("F", 0), ("F", 1), ("B", 1), ("B", 0))]]
    run = run_schedule(on_one, Costs.equal(2), transfer=0.5)
    assert run.makespan == 6 and run.n_transfers == 0 and run.bubble == 0


def test_no_work_is_no_bubble() -> None:
    run = run_schedule([[], []], Costs.equal(2))
    assert (run.makespan, run.bubble, run.bubble_of_ideal, run.peak_live) == (0, 0, 0, (0, 0))


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (4, 32), (3, 3)])
def test_pytorch_s_gpipe_and_1f1b_take_what_the_textbook_says(p: int, m: int) -> None:
    """Same time, other memory."""
    for name, held in (("GPipe", [m] * p), ("1F1B", [min(m, p - rank) for rank in range(p)])):
        run = run_schedule(schedule_ops(name, p, m), Costs.equal(p))
        assert run.makespan == 3 * (m + p - 1)
        assert run.bubble == pytest.approx((p - 1) / (m + p - 1)) and run.bubble_of_ideal == pytest.approx((p - 1) / m)
        assert list(run.peak_live) == held and run.n_transfers == 2 * m * (p - 1)


@pytest.mark.parametrize(("p", "m", "v"), [(2, 4, 2), (4, 8, 2), (4, 8, 3), (3, 9, 4)])
def test_pytorch_s_interleaved_1f1b(p: int, m: int, v: int) -> None:
    run = run_schedule(schedule_ops("Interleaved1F1B", p, m, v), Costs.equal(v * p))
    assert run.bubble == pytest.approx((p - 1) / (v * m + p - 1))
    assert run.n_transfers == 2 * m * (v * p - 1)
    assert all(held <= min(v * m, 2 * (p - i - 1) + (v - 1) * p + 1) for i, held in enumerate(run.peak_live))


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_of_pytorch_runs(name: str) -> None:
    n_stages = 4 * SCHEDULES[name]
    run = run_schedule(schedule_ops(name, 4, 8), Costs.equal(n_stages), memory_cap=8 * SCHEDULES[name])
    assert len(run.events) == sum(map(len, schedule_ops(name, 4, 8)))
    assert sum(run.busy) == pytest.approx(3 * 8 * n_stages)


def test_splitting_the_backward_pass_fills_the_bubble() -> None:
    whole, split = (
        run_schedule(schedule_ops(name, 4, 8), Costs.equal(8)) for name in ("Interleaved1F1B", "ZBVZeroBubble")
    )
    assert split.bubble < whole.bubble / 2


@pytest.mark.parametrize(
    ("orders", "kind", "text"),
    [
        (one_stage_each("X0"), "form", "rank 0: X0 on stage 0: a pass is one of F, B, I, W"),
        ([[Action("F", 2, 0)]], "form", "the forward pass of micro-batch 0 on stage 2: the stages are 0 to 1"),
        (
            one_stage_each("F0 F2 B0 B2", "F0 F2 B0 B2"),
            "missing",
            "nobody runs the forward pass of micro-batch 1 on stage 0",
        ),
        (
            [[Action("F", 0, 0)], [Action("B", 0, 0)]],
            "place",
            "rank 1: the backward pass of micro-batch 0 on stage 0: this",
        ),
        (
            one_stage_each("F0 F0 B0", "F0 B0"),
            "twice",
            "rank 0: the forward pass of micro-batch 0 on stage 0 comes twice",
        ),
        (one_stage_each("F0 B0", "F0 B0 W0"), "both", "a backward pass is whole or split"),
        (one_stage_each("F0 I0 B0", "F0 B0"), "both", "a backward pass is whole or split"),
        (one_stage_each("F0", "F0 B0"), "missing", "nobody runs the backward pass of micro-batch 0 on stage 0"),
        (one_stage_each("F0 I0", "F0 B0"), "missing", "nobody runs the weight gradient of micro-batch 0 on stage 0"),
        (one_stage_each("F0 W0", "F0 B0"), "missing", "nobody runs the input gradient of micro-batch 0 on stage 0"),
        (
            one_stage_each("F0 B0", "B0 F0"),
            "order",
            "rank 1: the backward pass of micro-batch 0 on stage 1 needs the forward pass of micro-batch 0 on stage 1, "
            "which comes later on the same rank",
        ),
        (
            one_stage_each("F0 W0 I0", "F0 B0"),
            "order",
            "the weight gradient of micro-batch 0 on stage 0 needs the input gradient of micro-batch 0 on stage 0",
        ),
        (
            one_stage_each("F0 B0 F1 B1", "F0 F1 B0 B1"),
            "deadlock",
            "no rank can go on: rank 0 is at B0 on stage 0 and waits for B0 on stage 1; rank 1 is at F1 on stage 1 and "
            "waits for F1 on stage 0",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_run_is_said(orders: list[list[Action]], kind: str, text: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        run_schedule(orders, Costs.equal(2))
    assert caught.value.kind == kind and text in str(caught.value)


def test_more_than_the_rank_has_room_for() -> None:
    assert run_schedule(GPIPE, Costs.equal(2), memory_cap=(2, 2)).peak_live == (2, 2)
    with pytest.raises(
        ScheduleError, match="rank 1 holds 2 activations with the forward pass of micro-batch 1"
    ) as caught:
        run_schedule(GPIPE, Costs.equal(2), memory_cap=(2, 1))
    assert caught.value.kind == "memory" and caught.value.action == Action("F", 1, 1)


def test_micro_batches_can_be_counted_for_it() -> None:
    with pytest.raises(ScheduleError, match="nobody runs the forward pass of micro-batch 2 on stage 0"):
        run_schedule(GPIPE, Costs.equal(2), n_microbatches=3)
    with pytest.raises(ScheduleError, match="micro-batch 1 on stage 0: the micro-batches are 0 to 0"):
        run_schedule(GPIPE, Costs.equal(2), n_microbatches=1)


def test_the_beginning_of_a_schedule_can_be_played() -> None:
    begun = one_stage_each("F0 F1", "F0")
    assert run_schedule(begun, Costs.equal(2), complete=False).makespan == 2
    with pytest.raises(ScheduleError) as caught:
        run_schedule(one_stage_each("F0 B0", "F0"), Costs.equal(2), complete=False)
    assert caught.value.lacks == Action("B", 1, 0)
    assert "needs the backward pass of micro-batch 0 on stage 1, which nobody has listed" in str(caught.value)


def test_the_half_that_is_listed_is_the_one_that_is_lacking() -> None:
    with pytest.raises(ScheduleError) as caught:
        run_schedule(one_stage_each("F0 I0 W0 F1 I1 W1", "F0 F1 I0 W0 I1 W1"), Costs.equal(2))
    assert caught.value.kind == "deadlock" and caught.value.lacks == Action("I", 1, 0)


def test_needs() -> None:
    assert needs(Action("F", 0, 0), 2) == ()
    assert needs(Action("W", 0, 3), 2) == ((Action("I", 0, 3),),)
    assert needs(Action("I", 1, 3), 2) == ((Action("F", 1, 3),),)
    assert live_counts([Action("F", 0, 0), Action("I", 0, 0), Action("W", 0, 0)]) == [1, 1, 0]


def test_costs() -> None:
    with pytest.raises(ValueError, match="every stage needs all three times"):
        Costs((1.0,), (1.0, 1.0), (1.0,))
    with pytest.raises(ValueError, match="less than no time"):
        Costs.of([-1.0])
    costs = Costs.of([1, 3])
    assert costs.n_stages == 2 and costs.time_of_micro_batch(1) == 9 == 3 * costs.time_of(Action("F", 1, 0))
    assert costs.time_of(Action("B", 1, 0)) == 6 == 2 * costs.time_of(Action("W", 1, 0))


@st.composite
def a_schedule(draw: st.DrawFn) -> tuple[list[list[Action]], list[int], list[int], list[int], int]:
    """Stages dealt to ranks and lists in any order that respects each rank's own needs, deadlocks included."""
    n_ranks, v, m = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    n_stages = n_ranks * v
    rng = random.Random(draw(st.integers(0, 10**6)))
    orders: list[list[Action]] = [[] for _ in range(n_ranks)]
    for stage in range(n_stages):
        for microbatch in range(m):
            kinds = "FIW" if rng.random() < 0.5 else "FB"
            orders[stage % n_ranks] += [Action(kind, stage, microbatch) for kind in kinds]
    for order in orders:
        rng.shuffle(order)
        # Mostly in an order that could run, so that not every example is a deadlock.
        if rng.random() < 0.8:
            order.sort(key=lambda one: one.microbatch)
            order.sort(key=lambda one: one.stage if one.kind == "F" else 2 * n_stages - one.stage)
            order.sort(key=lambda one: one.kind == "W")
    ticks = [[rng.randint(1, 4) for _ in range(n_stages)] for _ in range(3)]
    return orders, *ticks, rng.randint(0, 3)


@settings(max_examples=300, deadline=None)
@given(a_schedule())
def test_it_agrees_with_a_simulator_that_counts_ticks(schedule) -> None:
    orders, forward, first, second, transfer = schedule
    costs = Costs(tuple(map(float, forward)), tuple(map(float, first)), tuple(map(float, second)))
    ticks_of = {}
    for stage in range(costs.n_stages):
        for kind in "FBIW":
            ticks_of[kind, stage] = int(costs.time_of(Action(kind, stage, 0)))
    expected = tick_by_tick(orders, ticks_of, costs.n_stages, transfer)
    try:
        run = run_schedule(orders, costs, transfer)
    except ScheduleError as error:
        assert expected is None and error.kind in ("order", "deadlock")
        return
    assert expected == {event.action: (event.start, event.end) for event in run.events}
    for rank, order in enumerate(orders):
        held = [sum(s <= now < e for s, e in _lives(expected, order)) for now in range(int(run.makespan) + 1)]
        assert max(held) == run.peak_live[rank]
        assert [one.action for one in run.by_rank[rank]] == list(order)


def _lives(times: dict[Action, tuple[int, int]], order: list[Action]) -> list[tuple[int, int]]:
    """From when to when each activation of a rank is kept."""
    ends = {(one.stage, one.microbatch): times[one][1] for one in order if one.kind in "BW"}
    return [(times[one][0], ends[one.stage, one.microbatch]) for one in order if one.kind == "F"]
