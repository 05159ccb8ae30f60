"""The trusted side: hidden cases, expected values, limits, verdicts. Talks to workers, never runs student code."""

from grading.supervisor.result import ExerciseResult, SubmissionResult
from grading.supervisor.sandbox import Forkserver
from grading.supervisor.verdicts import Job, grade_job

__all__ = ["ExerciseResult", "Forkserver", "Job", "SubmissionResult", "grade_job"]
