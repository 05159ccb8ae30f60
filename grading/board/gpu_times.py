"""GPU times that somebody measured, by the file `gpu_times.csv` in the course's folder: shown on a board, never ranked.

    digest,gpu,seconds
    a5105af9a7e0f1d2,NVIDIA H200,4.2

A row says how long the script with this digest took to train the tiny model on that GPU. A row that cannot be read is
named and left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from grading.course import Course
from grading.errors import UserError
from grading.intake.sheet import read_sheet

GPU_TIMES = "gpu_times.csv"
COLUMNS = ("digest", "gpu", "seconds")
MOST_ON_GPU = 60
"""Characters of a GPU's name."""


@dataclass(frozen=True)
class GpuTime:
    """`GpuTime("NVIDIA H200", 4.2)`"""

    gpu: str
    seconds: float


@dataclass(frozen=True)
class GpuTimes:
    """By the digest of the script, and what is wrong with the rest, in sentences."""

    times: dict[str, GpuTime] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def read_gpu_times(course: Course, known: Collection[str]) -> GpuTimes:
    """What the course's file says of scripts with these digests. Raises UserError where it cannot be read at all."""
    path = course.root / GPU_TIMES
    if not path.exists():
        return GpuTimes()
    times, problems = {}, []
    for line, row in enumerate(read_sheet(path, "GPU times"), start=2):
        if line == 2 and (missing := [name for name in COLUMNS if name not in row]):
            remedy = f"let its first line be: {', '.join(COLUMNS)}"
            raise UserError(f'{path} has no column "{missing[0]}"', remedy)
        digest, gpu, seconds = ((row[column] or "").strip() for column in COLUMNS)
        took = _number(seconds)
        if took is None:
            problems.append(f'{GPU_TIMES}, row {line}: "{seconds}" is no number of seconds; the row is left out')
        elif digest not in known:
            problems.append(f'{GPU_TIMES}, row {line}: no entry has the digest "{digest}"; the row is left out')
        else:
            times[digest] = GpuTime(gpu[:MOST_ON_GPU], took)
    return GpuTimes(times, tuple(problems))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None
