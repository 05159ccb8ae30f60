"""The trusted side: hidden cases, expected values, limits, verdicts. Talks to workers, never runs student code."""

from grading.isolation.sandbox import Sandbox
from grading.supervisor.result import ExerciseResult, SubmissionResult
from grading.supervisor.verdicts import Job, grade_job

__all__ = ["ExerciseResult", "Job", "Sandbox", "SubmissionResult", "grade_job"]
