"""The trusted side: hidden cases, expected values, limits, verdicts. Talks to workers, never runs student code.

A name is found when it is first asked for: judging needs torch, and what makes a job or reads a result does not.
"""

from labkit.lazy import on_first_use

_HOMES = {
    "ExerciseResult": "grading.supervisor.result",
    "Job": "grading.supervisor.job",
    "Sandbox": "grading.isolation.sandbox",
    "SubmissionResult": "grading.supervisor.result",
    "grade_job": "grading.supervisor.rounds",
}
"""The public names, and the module of each."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    return on_first_use(__name__, _HOMES, name)
