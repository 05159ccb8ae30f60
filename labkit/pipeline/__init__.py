"""Pipeline schedules: what each rank runs in which order, checked against what may run, and played on a clock.

    orders = [[Action("F", 0, 0), Action("B", 0, 0)], [Action("F", 1, 0), Action("B", 1, 0)]]
    run = run_schedule(orders, Costs.equal(2), transfer=0.5)
    run.makespan, run.bubble, run.peak_live

An order that cannot run raises a `ScheduleError` whose text names the pass and what it lacks. `complete=False` plays
the beginning of a schedule, which is how `ScheduleGame` builds one pass at a time.

No tensor is computed or sent here, and no schedule is made: orders come in, times go out.
"""

from labkit.pipeline.actions import KINDS, Action, Costs, in_words, needs
from labkit.pipeline.game import ScheduleGame
from labkit.pipeline.rules import ScheduleError, live_counts
from labkit.pipeline.run import Event, ScheduleRun, run_schedule
from labkit.pipeline.strip import in_a_strip

__all__ = [
    "KINDS",
    "Action",
    "Costs",
    "Event",
    "ScheduleError",
    "ScheduleGame",
    "ScheduleRun",
    "in_a_strip",
    "in_words",
    "live_counts",
    "needs",
    "run_schedule",
]
