"""The generated part of docs/map.md: which lab needs which, its minutes, what stands in for a skipped lab, and plans.

What a lab is stands in `labkit.labs`; the rest of the page is its author's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grading.build.table import with_table
from labkit.labs import LABS, Lab, find_lab, in_hours

PAGE = Path("docs", "map.md")
MAP = "map"
TRACKS = {
    "memory": "what is the peak now?",
    "kernels": "which byte moves, and how often?",
    "scale": "who holds what, and who sends what?",
}

Weeks = tuple[tuple[str, ...], ...]
PLANS: dict[str, Weeks] = {
    "4 weeks: the memory of one device": (("00", "01"), ("02", "03"), ("05",), ("08",)),
    "6 weeks: memory, then many devices": (("00", "01"), ("02", "03"), ("05",), ("08",), ("14",), ("15",)),
    "12 weeks: memory, kernels in Triton, many devices": (
        *(("00", "01"), ("02", "03"), ("05",), ("06",), ("08",), ()),
        *(("09",), ("12",), ("13",), ("14",), ("15",), ("16",)),
    ),
    "18 weeks: every lab": (
        *(("00", "01", "02"), ("03", "04"), ("05",), ("06",), ("08",), ("07", "14"), ()),
        *(("09",), ("11",), ("10",), ("12",), ("13",), ("15",), ("16",)),
        *(("17",), ("18",), ("19",), ("20",)),
    ),
}
"""Labs by week; an empty week is for what is optional, for open questions, and for who is behind."""


def with_map(text: str, labs: Sequence[Lab] = LABS) -> str:
    """The page with the map between its marker lines. Raises NoPlaceForTable."""
    return with_table(text, course_map(labs), MAP)


def course_map(labs: Sequence[Lab]) -> str:
    """Markdown: a graph, a table of the labs that stand, and the plans."""
    return "\n\n".join([graph(labs), lab_rows([lab for lab in labs if lab.stands]), *map(plan, PLANS)])


def graph(labs: Sequence[Lab]) -> str:
    """A Mermaid graph: an arrow from each lab to those that need it; dashed where the lab is only planned."""
    lines = ["```mermaid", "flowchart LR"]
    for track, question in TRACKS.items():
        lines += [f'  subgraph {track}["{track}: {question}"]', *(_node(lab) for lab in labs if lab.track == track)]
        lines.append("  end")
    lines += [_node(lab) for lab in labs if lab.track not in TRACKS]
    lines += [f"  L{need} --> L{lab.id}" for lab in labs for need in lab.needs]
    return "\n".join([*lines, "  classDef planned stroke-dasharray: 4 4", "```"])


def _node(lab: Lab) -> str:
    return f'  L{lab.id}["{lab.id} {lab.title}"]' + ("" if lab.stands else ":::planned")


def lab_rows(labs: Sequence[Lab]) -> str:
    """A row for each lab."""
    rows = ["| lab | core | optional | needs | if you skipped that |", "|---|---|---|---|---|"]
    for lab in labs:
        minutes = [in_hours(some) if some else "" for some in (lab.minutes, lab.optional_minutes)]
        cells = [*minutes, ", ".join(lab.needs), "; ".join(text for _, text in lab.instead)]
        rows.append(" | ".join([f"| {lab.id} {lab.title}", *(cell or "–" for cell in cells)]) + " |")
    return "\n".join(rows)


def plan(name: str) -> str:
    """The weeks of one plan, with the time that their core takes."""
    rows = [f"## {name}", "", "| week | labs | core |", "|---|---|---|"]
    for number, week in enumerate(PLANS[name], 1):
        core = in_hours(sum(find_lab(lab).minutes for lab in week)) if week else "–"
        rows.append(f"| {number} | {', '.join(week) or 'what is optional or left over'} | {core} |")
    return "\n".join(rows)
