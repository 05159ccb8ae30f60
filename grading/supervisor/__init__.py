"""The trusted side: hidden cases, expected values, limits, verdicts. Talks to workers, never runs student code."""

from grading.supervisor.forkserver import Forkserver
from grading.supervisor.grade import Job, grade_job
from grading.supervisor.result import ExerciseResult, SubmissionResult

__all__ = ["ExerciseResult", "Forkserver", "Job", "SubmissionResult", "grade_job"]
