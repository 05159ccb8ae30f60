"""A schedule that is played by hand: what may be added, what is refused and why, and what it comes to."""

from __future__ import annotations

import pytest

from labkit.pipeline import Action, ScheduleGame


def play(game: ScheduleGame, moves: str) -> list[str]:
    """Moves such as "F0 B0" (kind and stage); what was refused."""
    return [reason for move in moves.split() if (reason := game.play(move[0], int(move[1:])))]


def test_a_stage_takes_its_micro_batches_in_order() -> None:
    game = ScheduleGame(2, 3)
    assert play(game, "F0 F0 F1") == []
    assert game.moves == [Action("F", 0, 0), Action("F", 0, 1), Action("F", 1, 0)]
    assert game.next("F", 0) == Action("F", 0, 2) and game.next("B", 1) == Action("B", 1, 0)
    assert game.run.makespan == 2.0 and game.run.peak_live == (2, 1)


@pytest.mark.parametrize(
    ("moves", "reason"),
    [
        ("F1", "the forward pass of micro-batch 0 on stage 1 needs the forward pass of micro-batch 0 on stage 0"),
        ("B1", "the backward pass of micro-batch 0 on stage 1 needs the forward pass of micro-batch 0 on stage 1"),
        ("F0 B0", "the backward pass of micro-batch 0 on stage 0 needs the backward pass of micro-batch 0 on stage 1"),
        ("F0 F1 F1", "the forward pass of micro-batch 1 on stage 1 needs the forward pass of micro-batch 1 on stage 0"),
    ],
)
def test_an_illegal_move_is_refused_with_what_it_lacks(moves: str, reason: str) -> None:
    game = ScheduleGame(2, 3)
    *before, _ = moves.split()
    assert play(game, " ".join(before)) == []
    kept, run = list(game.moves), game.run
    assert play(game, moves.split()[-1]) == [f"Not yet: {reason}, which has not been played."]
    assert game.moves == kept and game.run is run


def test_a_stage_that_is_done_and_one_that_is_full_say_so() -> None:
    game = ScheduleGame(1, 2)
    assert play(game, "F0 F0 F0") == ["Stage 0 has done all its forward passes."]
    game = ScheduleGame(2, 4, room=2)
    assert play(game, "F0 F0 F0") == ["Stage 0 holds 2 micro-batches already, and has no room for one more."]


def test_undo_and_start_again() -> None:
    game = ScheduleGame(2, 2)
    play(game, "F0 F1 B1")
    game.undo()
    assert game.next("B", 1) == Action("B", 1, 0) and game.run.makespan == 2.0
    game.clear()
    game.undo()
    assert game.moves == [] and game.run.makespan == 0.0 and game.run.peak_live == (0, 0)


def test_the_score_of_a_whole_schedule() -> None:
    """1F1B takes as little time as anything; a batch that is never cut takes all passes one after the other."""
    game = ScheduleGame(2, 3)
    assert play(game, "F0 F0 F1 B1 B0 F0 F1 B1") == [] and not game.is_done
    assert game.score == "4 passes to go. So far 7 units of time; stages hold at most 2, 1."
    assert play(game, "B0 F1 B1 B0") == [] and game.is_done
    assert game.run.makespan == game.least == 12.0
    assert game.score == "Done in 12 units of time (no order takes less); stages hold at most 2, 1."
    slow = ScheduleGame(2, 2)
    play(slow, "F0 F1 B1 B0 F0 F1 B1 B0")
    assert slow.score == "Done in 12 units of time (9 are possible); stages hold at most 1, 1."
    narrow = ScheduleGame(2, 2, room=1)
    play(narrow, "F0 F1 B1 B0 F0 F1 B1 B0")
    assert narrow.score == "Done in 12 units of time; stages hold at most 1, 1.", "with less room, less is possible"


def test_there_is_something_to_play() -> None:
    with pytest.raises(ValueError, match="at least one stage"):
        ScheduleGame(0, 3)
