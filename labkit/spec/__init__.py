"""What an exercise is: frozen dataclasses that declare it, and those that record one run of it.

An exercise stands in two halves that share an id. `Exercise` says what is asked, given and run, and is present
wherever student code runs. `Oracle` says what is true, and is absent from the grader's sandbox.

There is no logic here: nothing is run, compared or judged in this room. A budget looks its measure up, no more.
"""

from labkit.spec.exercise import EXTRA_SHARE, STUB_MESSAGE, Answer, Exercise, Run
from labkit.spec.oracle import CANNOT_TELL, EXACT, Budget, Hint, Oracle, Outcome, Rivals, Tolerance
from labkit.spec.record import Case, CaseRun, Observation, Tree, Trouble
from labkit.spec.sizes import GiB, KiB, MiB

__all__ = [
    "CANNOT_TELL",
    "EXACT",
    "EXTRA_SHARE",
    "STUB_MESSAGE",
    "Answer",
    "Budget",
    "Case",
    "CaseRun",
    "Exercise",
    "GiB",
    "Hint",
    "KiB",
    "MiB",
    "Observation",
    "Oracle",
    "Outcome",
    "Rivals",
    "Run",
    "Tolerance",
    "Tree",
    "Trouble",
]
