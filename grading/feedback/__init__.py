"""The page that a student gets back: what was reached, what is missing and why, then their own notebook.

nbgrader makes it where it made its own (`nbgrader generate_feedback`, the formgrader's button, `feedback`), from the
graded notebook, the gradebook's points and comments, and the stored result. Of hidden cases it shows what
`ExerciseResult.shown` says and nothing else.
"""

from grading.feedback.exporter import FeedbackExporter
from grading.feedback.marked import ReadMarks

__all__ = ["FeedbackExporter", "ReadMarks"]
