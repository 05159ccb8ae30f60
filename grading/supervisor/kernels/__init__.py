"""The witness for budgets of kernels: the answer's kernels, taken from its text, run again on inputs it never saw."""

from grading.supervisor.kernels.extract import extract
from grading.supervisor.kernels.names import cells_before
from grading.supervisor.kernels.rerun import replay
from grading.supervisor.kernels.sanitize import NotReplayable
from grading.supervisor.kernels.verdict import is_compiled, is_replayed, judge_replay, without_compiled

__all__ = [
    "NotReplayable",
    "cells_before",
    "extract",
    "is_compiled",
    "is_replayed",
    "judge_replay",
    "replay",
    "without_compiled",
]
