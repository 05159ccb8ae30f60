"""A schedule built by hand: one pass after the other, as a player chooses, with a word on each that cannot run yet.

A stage takes the micro-batches in their order; which pass comes next on which stage is the player's choice. What may
run is `run`'s to say, and how it looks a figure's.
"""

from __future__ import annotations

from labkit.pipeline.actions import Action, Costs, in_words
from labkit.pipeline.rules import ScheduleError
from labkit.pipeline.run import ScheduleRun, run_schedule


class ScheduleGame:
    """Equal stages, one on each rank. room: how many micro-batches a stage may hold at once, where that is limited."""

    def __init__(self, n_stages: int, n_microbatches: int, room: int | None = None) -> None:
        if n_stages < 1 or n_microbatches < 1:
            raise ValueError("a schedule needs at least one stage and one micro-batch")
        self.costs, self.n_microbatches, self.room = Costs.equal(n_stages), n_microbatches, room
        self.moves: list[Action] = []
        self.run = self._played([])

    @property
    def n_stages(self) -> int:
        return self.costs.n_stages

    def next(self, kind: str, stage: int) -> Action:
        """The pass that a click on this kind and stage stands for: of the first micro-batch that has not had it."""
        return Action(kind, stage, sum(move.kind == kind and move.stage == stage for move in self.moves))

    def play(self, kind: str, stage: int) -> str:
        """Add a pass, and return "". One that cannot run yet is not added: then it is the reason, in words."""
        action = self.next(kind, stage)
        if action.microbatch == self.n_microbatches:
            return f"Stage {stage} has done all its {'forward' if kind == 'F' else 'backward'} passes."
        try:
            self.run = self._played([*self.moves, action])
        except ScheduleError as error:
            if error.kind == "memory":
                return f"Stage {stage} holds {self.room} micro-batches already, and has no room for one more."
            return f"Not yet: {in_words(action)} needs {in_words(error.lacks)}, which has not been played."
        self.moves.append(action)
        return ""

    def undo(self) -> None:
        """Take the last pass back, if there is one."""
        self.moves = self.moves[:-1]
        self.run = self._played(self.moves)

    def clear(self) -> None:
        """Begin again."""
        self.moves = []
        self.run = self._played([])

    @property
    def is_done(self) -> bool:
        return len(self.moves) == 2 * self.n_stages * self.n_microbatches

    @property
    def least(self) -> float:
        """No order of whole passes takes less: the first micro-batch has to arrive and the last gradient to come back,
        and in between the last stage works all the time."""
        return (self.n_microbatches + self.n_stages - 1) * self.costs.time_of_micro_batch(0)

    @property
    def score(self) -> str:
        """Where the schedule stands, in a sentence."""
        held = ", ".join(map(str, self.run.peak_live))
        if not self.is_done:
            left = 2 * self.n_stages * self.n_microbatches - len(self.moves)
            return f"{left} passes to go. So far {self.run.makespan:g} units of time; stages hold at most {held}."
        comparison = " (no order takes less)" if self.run.makespan <= self.least else f" ({self.least:g} are possible)"
        if self.room is not None and self.room < min(self.n_stages, self.n_microbatches):
            comparison = ""
        return f"Done in {self.run.makespan:g} units of time{comparison}; stages hold at most {held}."

    def _played(self, moves: list[Action]) -> ScheduleRun:
        orders = [[move for move in moves if move.stage == stage] for stage in range(self.n_stages)]
        return run_schedule(
            orders, self.costs, memory_cap=self.room, n_microbatches=self.n_microbatches, complete=False
        )
