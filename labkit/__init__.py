"""What the notebooks of Efficient Training Labs import: checks, meters, figures, the environment page.

Nothing here grades: the instructor's side is the package `grading`.
"""

from labkit.check import CheckFailed, check, progress
from labkit.device import device, has_gpu, seed_all

__all__ = ["CheckFailed", "check", "device", "has_gpu", "progress", "seed_all"]
