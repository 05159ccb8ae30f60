"""The record of a class as one page: charts, pass rates, mistakes, and every student's outcomes.

Its one script sorts tables. The page's policy lets no other run, and every text is made harmless (`grading/pages`).
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from grading.isolation import isolates
from grading.pages import policy_with, template_of
from grading.report.charts import Histogram, histogram_of
from grading.report.outcomes import OUTCOME_STYLES, style_of
from grading.report.record import GRADED, NOT_HANDED_IN, ClassRecord, Handin, LabRecord, Total
from grading.report.sections import section_table
from grading.report.statistics import ItemStatistics, class_mistakes, item_statistics, shares_of

N_MISTAKES = 3
"""Of an exercise; of the whole class:"""
N_CLASS_MISTAKES = 10
N_SHADES = 6

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class LabView:
    """One lab as the page shows it."""

    record: LabRecord
    anchor: str
    handed_in: tuple[Handin, ...]
    n_graded: int
    chart: Histogram | None
    items: tuple[ItemStatistics, ...]


@dataclass(frozen=True)
class AttentionItem:
    """Something a person has to do. alarm: it concerns somebody's grade now."""

    text: str
    who: tuple[str, ...]
    alarm: bool


def as_page(record: ClassRecord, out: Path) -> str:
    """The page's text, to be written to `out`: links to feedback pages are relative to its folder."""
    totals = record.totals()
    labs = [_lab(lab, f"lab-{n}") for n, lab in enumerate(record.labs)]
    script = (_HERE / "sort.js").read_text(encoding="utf-8")
    template = template_of(_HERE, "page.html.j2", link=lambda path: link(path, out))
    return template.render(
        record=record,
        policy=policy_with(script),
        script=Markup(script),
        isolates=isolates,
        style_of=style_of,
        shade=shade,
        labs=labs,
        totals=totals,
        n_labs=sum(bool(lab.handed_in) for lab in labs),
        by_student=_by_student(record, totals),
        sections=section_table(record),
        chart=histogram_of(shares_of([total for total in totals if total.complete])),
        n_incomplete=sum(not total.complete for total in totals),
        attention=attention(record),
        hard=[(lab, each) for lab in labs for each in lab.items if each.fails_for_many],
        mistakes=class_mistakes(record.labs)[:N_CLASS_MISTAKES],
        styles=tuple(OUTCOME_STYLES.values()),
        n_mistakes=N_MISTAKES,
    )


def shade(share: float) -> str:
    """The class of colour of a share of the points (0 to 1) in the map of the class; the share stands there as well."""
    return f"heat-{min(int(max(share, 0.0) * (N_SHADES - 1) + 1e-9), N_SHADES - 1)}"


def link(path: Path, out: Path) -> str:
    """The address of a file as seen from the page `out`."""
    relative = Path(os.path.relpath(path, out.resolve().parent)).as_posix()
    # "./" in front: a name with a colon would else read as a scheme.
    return "./" + quote(relative, errors="surrogateescape")


def _lab(lab: LabRecord, anchor: str) -> LabView:
    handed_in = tuple(handin for handin in lab.handins if handin.state != NOT_HANDED_IN)
    graded = [handin for handin in handed_in if handin.state == GRADED]
    return LabView(lab, anchor, handed_in, len(graded), histogram_of(shares_of(graded)), item_statistics(lab))


def _by_student(record: ClassRecord, totals: tuple[Total, ...]) -> list[tuple[Total, list[Handin]]]:
    """Each student's total with their work, in the order of the labs that anybody handed in."""
    theirs: dict[str, list[Handin]] = defaultdict(list)
    for handin in record.handins:
        theirs[handin.student].append(handin)
    return [(total, theirs[total.student]) for total in totals]


def attention(record: ClassRecord) -> list[AttentionItem]:
    """What a person has to look at: work without a grade first, then the rest, each with the names."""
    found: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for handin in record.handins:
        if handin.reason:
            found[f"{handin.lab}: {handin.state}: {handin.reason}", True].append(handin.student)
    for handin in record.handins:
        if handin.outdated:
            found[f"{handin.lab}: {handin.outdated}", False].append(handin.student)
        for mark in handin.marks:
            if mark.waiting:
                found[f"{handin.lab}: {mark.item.id} waits for a person's points", False].append(handin.student)
            elif mark.outcome == "suspected":
                found[f"{handin.lab}: {mark.item.id} is suspected: {mark.hint or 'no reason'}", True].append(
                    handin.student
                )
    for problem in record.problems:
        found[problem, True].append("the course")
    ordered = sorted(found.items(), key=lambda pair: not pair[0][1])
    return [AttentionItem(text, tuple(who), alarm) for (text, alarm), who in ordered]
