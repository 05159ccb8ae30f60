"""Tiers of isolation for students' programs: which there are, which of them works here, and a worker started in one.

A tier is chosen by a trial on this machine, and a machine on which none works refuses to grade. How a worker is
confined once it runs is `grading.worker.confine`; what it is to run is the supervisor's.
"""

from grading.isolation.selection import select_tier
from grading.isolation.tiers import AUTO, CHOICES, isolates
from grading.worker.confine.tier import Tier

__all__ = ["AUTO", "CHOICES", "Tier", "isolates", "select_tier"]
