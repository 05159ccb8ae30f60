"""The log of a course: who was graded with what, when and why, written once and never changed.

It records and checks. What a grade is worth, and what to do about a difference, is for people.
"""

from grading.audit.entry import Entry
from grading.audit.log import Log

__all__ = ["Entry", "Log"]
