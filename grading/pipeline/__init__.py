"""From a class's submissions to its grades: prepare, run, store and write, as a stream with little in flight.

`lab` holds it together; what a job does is the supervisor's, where it runs the executors', what is written the
gradebook's.
"""

from grading.pipeline.interrupt import Interrupted
from grading.pipeline.lab import grade_lab

__all__ = ["Interrupted", "grade_lab"]
