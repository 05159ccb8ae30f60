"""The log of a course: what was received and who was graded with what, when and why, written once and never changed.

It keeps entries and checks that they are whole and in order. What an entry means is for those who write and read it.
"""

from grading.log.entry import LogEntry
from grading.log.log import Log

__all__ = ["Log", "LogEntry"]
