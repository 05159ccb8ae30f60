"""A board as CSV: one row for each place, and none for ghosts. No program runs a text of it as a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from grading.board.gpu_times import GpuTime
from grading.board.places import Board, Place
from grading.report.csv_table import text
from labkit.spec import MiB

COLUMNS = (
    "place",
    "shared_by",
    "name",
    "virtual_hours",
    "declared_steps",
    "step_ms",
    "setup_ms",
    "peak_mib",
    "largest",
    "worst_loss",
    "digest",
    "changed",
    "gpu",
    "gpu_seconds",
)


def as_csv(board: Board, gpu_times: Mapping[str, GpuTime]) -> str:
    """The whole file. shared_by: how many entries have this place. gpu, gpu_seconds: empty where nobody measured."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for place in board.places:
        values = _row(place, gpu_times.get(place.entry.digest))
        writer.writerow([text(value) if isinstance(value, str) else value for value in values])
    return file.getvalue()


def _row(place: Place, gpu: GpuTime | None) -> tuple[str | int | float, ...]:
    entry = place.entry
    return (
        place.rank,
        place.shared_by,
        place.name,
        entry.virtual_hours,
        entry.declared_steps,
        entry.step_ms,
        entry.setup_ms,
        entry.total_peak_bytes // MiB,
        entry.largest,
        round(max(entry.losses.values()), 4) if entry.losses else "",
        entry.digest,
        place.changed,
        gpu.gpu if gpu else "",
        gpu.seconds if gpu else "",
    )
