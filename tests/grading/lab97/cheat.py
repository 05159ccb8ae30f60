"""What a cheat is, and what several of them put before their answer: a false meter, a forged record of launches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cheat:
    """says: a part of what the student reads, or, of a suspected answer, of what the instructor reads."""

    tries: str
    exercise: str
    cells: tuple[str, ...]
    outcome: str
    says: str


PATCH = """
from labkit.meters import METERS
import contextlib
honest = METERS["traffic"]
@contextlib.contextmanager
def less(measured, held):
    with honest(measured, held): yield
    measured.update(load_bytes=8.0 * measured["launches"], store_bytes=0.0, atomic_bytes=0.0, launches=1.0,
                    out_of_bounds=0.0, races=0.0, computed_by_torch=0.0)
METERS["traffic"] = less
"""
FORGE = """
from labkit.meters.launch_log import LaunchLog
as_it_was = LaunchLog.as_tree
def forged(self, outputs):
    log = as_it_was(self, outputs)
    if not outputs: return log
    {change}
    return log
LaunchLog.as_tree = forged
"""
IN_TORCH = "def add(x, y):\n    return x + y"
BY_TORCH = "rests on `add`, computed by PyTorch"
