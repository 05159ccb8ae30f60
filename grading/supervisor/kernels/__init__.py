"""The witness for budgets of kernels: the answer's kernels, taken from its text, run again on inputs it never saw."""

from grading.supervisor.kernels.extract import extract
from grading.supervisor.kernels.names import cells_before
from grading.supervisor.kernels.rerun import rerun
from grading.supervisor.kernels.sanitize import NotRerunnable
from grading.supervisor.kernels.verdict import fails_at_full_size, is_compiled, is_rerun, judge_rerun, without_compiled

__all__ = [
    "NotRerunnable",
    "cells_before",
    "extract",
    "fails_at_full_size",
    "is_compiled",
    "is_rerun",
    "judge_rerun",
    "rerun",
    "without_compiled",
]
