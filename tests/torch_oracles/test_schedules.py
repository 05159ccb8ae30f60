"""PyTorch's pipeline schedules as lists of passes: complete, in an order that can run, with the textbook's memory."""

from __future__ import annotations

import pytest

from labkit.pipeline import Action
from labkit.torch_oracles import SCHEDULES, schedule_ops, schedules


def held_at_most(ops: list[Action]) -> int:
    """Micro-batches whose activations a rank holds at once."""
    now = most = 0
    for op in ops:
        now += {"F": 1, "B": -1, "I": 0, "W": -1}[op.kind]
        most = max(most, now)
    return most


def run_in_order(ranks: list[list[Action]], n_stages: int) -> int:
    """How many passes run if each rank waits for what its next one needs: all of them, or fewer in a deadlock."""
    done: set[Action] = set()
    at = [0] * len(ranks)

    def can_run(op: Action) -> bool:
        if op.kind == "F":
            return op.stage == 0 or Action("F", op.stage - 1, op.microbatch) in done
        if op.kind == "W":
            return Action("I", op.stage, op.microbatch) in done
        above = [Action(kind, op.stage + 1, op.microbatch) for kind in ("B", "I")]
        return Action("F", op.stage, op.microbatch) in done and (
            op.stage == n_stages - 1 or any(a in done for a in above)
        )

    moved = True
    while moved:
        moved = False
        for rank, ops in enumerate(ranks):
            while at[rank] < len(ops) and can_run(ops[at[rank]]):
                done.add(ops[at[rank]])
                at[rank] += 1
                moved = True
    return sum(at)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("n_ranks", "n"), [(2, 4), (4, 8), (4, 12)])
def test_every_schedule_is_complete_and_can_run(schedule: str, n_ranks: int, n: int) -> None:
    ranks = schedule_ops(schedule, n_ranks, n)
    n_stages = SCHEDULES[schedule] * n_ranks
    assert {op.stage for ops in ranks for op in ops} == set(range(n_stages))
    assert run_in_order(ranks, n_stages) == sum(map(len, ranks))


@pytest.mark.parametrize(("n_ranks", "n"), [(4, 8), (4, 32), (3, 3)])
def test_gpipe_holds_every_micro_batch_and_1f1b_as_many_as_there_are_ranks(n_ranks: int, n: int) -> None:
    assert [held_at_most(ops) for ops in schedule_ops("GPipe", n_ranks, n)] == [n] * n_ranks
    assert [held_at_most(ops) for ops in schedule_ops("1F1B", n_ranks, n)] == list(range(n_ranks, 0, -1))


def test_1f1b_as_it_is_drawn_everywhere() -> None:
    first, last = schedule_ops("1F1B", 2, 3)
    assert [(op.kind, op.microbatch) for op in first] == [("F", 0), ("F", 1), ("B", 0), ("F", 2), ("B", 1), ("B", 2)]
    assert [(op.kind, op.microbatch) for op in last] == [("F", 0), ("B", 0), ("F", 1), ("B", 1), ("F", 2), ("B", 2)]
    assert {op.stage for op in first} == {0} and {op.stage for op in last} == {1}


def test_more_stages_on_a_rank() -> None:
    ranks = schedule_ops("Interleaved1F1B", 2, 4, n_stages_per_rank=3)
    assert [{op.stage for op in ops} for ops in ranks] == [{0, 2, 4}, {1, 3, 5}]


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B", "ZBVZeroBubble", "DualPipeV"])
def test_micro_batches_need_not_be_whole_rounds_of_the_ranks(schedule: str) -> None:
    ranks = schedule_ops(schedule, 2, 7)
    assert run_in_order(ranks, 2 * SCHEDULES[schedule]) == sum(map(len, ranks))


def test_what_cannot_be_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="there is no schedule '2F2B': take one of GPipe, 1F1B, "):
        schedule_ops("2F2B", 2, 4)
    with pytest.raises(ValueError, match=r"greater than or equal to the number of stages \(4\)"):
        schedule_ops("1F1B", 4, 3)
    with pytest.raises(ValueError, match="7"):
        schedule_ops("Interleaved1F1B", 2, 7)
    with pytest.raises(ValueError, match="num_stages_per_rank to be 1"):
        schedule_ops("GPipe", 2, 4, n_stages_per_rank=2)


def test_a_schedule_that_leaves_one_out_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = schedules.private("get_schedule_ops")
    monkeypatch.setattr(schedules, "private", lambda name: lambda *args: [ops[: len(ops) // 2] for ops in real(*args)])
    with pytest.raises(RuntimeError, match="does not run every micro-batch once on stage 0"):
        schedule_ops("GPipe", 2, 4)
