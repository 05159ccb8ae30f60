"""Ranks: several copies of one function that exchange messages, counted exactly, the same on every machine.

Here they are simulated in one process. Nothing is timed, and no process, socket or GPU is involved.
"""

from labkit.ranks.simulated import Comm, Traffic, Work, run_ranks, simulate
from labkit.ranks.turns import CommError, RankFailed

__all__ = ["Comm", "CommError", "RankFailed", "Traffic", "Work", "run_ranks", "simulate"]
