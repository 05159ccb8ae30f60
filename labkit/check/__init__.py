"""Check an answer beside the notebook: run the public cases, judge them, say what is wrong and why."""

from labkit.check.api import CheckFailed, check, examine, progress
from labkit.check.judge import judge
from labkit.check.verdict import Verdict
from labkit.compare import inputs_untouched

__all__ = ["CheckFailed", "Verdict", "check", "examine", "inputs_untouched", "judge", "progress"]
