"""A board as one page that needs no other file, no network and no script.

What a student wrote (one line of each entry) is made harmless, as every text is (`grading/pages`).
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from grading.board.gpu_times import GpuTime
from grading.board.places import Board
from grading.board.scripts import FOLDER
from grading.isolation import isolates
from grading.pages import template_of
from labkit.capstone import Entry
from labkit.spec import GiB

CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "temporaries")
"""Those of a peak that have a colour of their own."""
OTHER = "other"


@dataclass(frozen=True)
class BarPart:
    """A category's part of a peak: `BarPart("activations", 5.2, 65.0)`; percent is of the whole bar's scale."""

    category: str
    gib: float
    percent: float


def as_page(
    board: Board,
    course: str,
    until: datetime.datetime | None,
    gpu_times: Mapping[str, GpuTime],
    verified: tuple[str, ...] = (),
    published: Collection[str] = (),
) -> str:
    """The page's text.

    verified: sentences on how the scores were worked out again, where they were. published: the digests of scripts that
    lie in FOLDER beside the page.
    """
    shown = {row.entry.digest for row in board.places} & set(gpu_times)
    widest = max((row.entry.total_peak_bytes for row in board.rows), default=0)
    scale = max(board.memory_bytes or 0, widest)
    untrusted = sum(not isolates(row.candidate.isolation) for row in board.places)
    return template_of(Path(__file__).parent, "page.html.j2").render(
        board=board,
        course=course,
        until=until,
        gpu_times=gpu_times,
        has_gpu=bool(shown),
        verified=verified,
        published=published,
        scripts=FOLDER,
        categories=CATEGORIES,
        untrusted=untrusted,
        bar=lambda entry: bar_of(entry, scale),
        gib=lambda n_bytes: f"{n_bytes / GiB:.2f}",
        hours=hours_in_words,
    )


def bar_of(entry: Entry, scale: int) -> list[BarPart]:
    """The peak's parts, those without a colour together, the widest bar being `scale` bytes long."""
    sizes = {name: entry.peak_bytes.get(name, 0) for name in CATEGORIES}
    sizes[OTHER] = entry.total_peak_bytes - sum(sizes.values())
    return [BarPart(name, size / GiB, round(100 * size / scale, 2)) for name, size in sizes.items() if size > 0]


def hours_in_words(hours: float) -> str:
    """As many digits as a score has: two entries that look the same share a place."""
    return f"{hours:,.6g}"
