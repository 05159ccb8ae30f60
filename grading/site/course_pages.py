"""The pages that are no labs: the front page, the table of exercises, what students and instructors read.

Texts come from the course's own README, docs and declarations, with links to other files of this project turned into
links between pages, or into plain words where the file has no page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grading.build.compile import Built
from grading.build.course_map import PLANS, TRACKS
from grading.build.directives import counted
from grading.build.table import HEAD, row, time_in_words
from grading.site.prerequisites import drawing
from labkit.exercises import of_lab
from labkit.labs import LABS, find_lab, in_hours

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[(?P<text>[^\[\]]*)\]\((?P<to>[^()\s]+)\)")
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
MERMAID = re.compile(r"^```mermaid$.*?^```$", re.DOTALL | re.MULTILINE)
FOR_STUDENTS = "students.md"
README_SECTION = r"^## {title}$(?P<text>.*?)(?=^## )"


def front_page(labs: Sequence[Built]) -> str:
    """What the course is, what to do first, and the labs in order."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=True
    )
    rows = [_lab_facts(lab) for lab in labs]
    hours = sum(find_lab(lab.name[:2]).minutes for lab in labs)
    weeks = [name.partition(" ")[0] for name in PLANS]
    plans = f"{', '.join(weeks[:-1])} and {weeks[-1]} weeks"
    template = environment.get_template("front.md.j2")
    return template.render(labs=rows, hours=in_hours(hours), n_labs=len(labs), plans=plans)


def _lab_facts(built: Built) -> dict[str, object]:
    lab = find_lab(built.name[:2])
    n_optional = sum(one.optional for one in of_lab(lab.id).values())
    exercises = counted(len(of_lab(lab.id)) - n_optional, "exercise")
    return {
        "id": lab.id,
        "title": lab.title,
        "page": f"labs/{built.name}",
        "opening": opening_of(built),
        "time": in_hours(lab.minutes),
        "optional": in_hours(lab.optional_minutes) if lab.optional_minutes else "",
        "exercises": f"{exercises} and {n_optional} optional" if n_optional else exercises,
        "needs": list(lab.needs),
        "track": lab.track if lab.track in TRACKS else "",
    }


def opening_of(built: Built) -> str:
    """What a lab opens with, in one line: facts that surprise, and the question that they raise."""
    _, opening, *_ = built.student.cells[0].source.split("\n\n")
    return " ".join(opening.split())


def labs_page(labs: Sequence[Built]) -> str:
    """All labs by name, for the navigation beside each of them."""
    names = "\n".join(built.name for built in labs)
    text = "What each lab asks and how long it takes stands on the [front page](../index.md)."
    return f"# Labs\n\n{text}\n\n```{{toctree}}\n{names}\n```\n"


def exercises_page(labs: Sequence[Built]) -> str:
    """Every exercise of the labs, with points, difficulty and minutes."""
    parts = [
        "# Exercises",
        "Minutes of an exercise are without reading; a lab's time is with it. What is optional adds extra credit and "
        "never lowers a grade.",
    ]
    for built in labs:
        lab, exercises = find_lab(built.name[:2]), list(of_lab(built.name[:2]).values())
        core = sum(one.points for one in exercises if not one.optional)
        facts = f"{counted(len(exercises), 'exercise')}, {counted(core, 'point')}, {time_in_words(lab.id, exercises)}"
        parts.append(f"## {lab.id} {lab.title}\n\n[Open the lab](labs/{built.name}.ipynb): {facts}.")
        parts.append("\n".join([HEAD, *map(row, exercises)]))
    return "\n\n".join(parts) + "\n"


def pages_of_docs() -> dict[Path, str]:
    """The page of each file that students or instructors read, by its place among the pages."""
    sources = {ROOT / "grading" / "README.md": Path("instructors", "grading.md")}
    sources |= {path: Path("instructors", path.name) for path in sorted((ROOT / "docs").glob("*.md"))}
    sources[ROOT / "docs" / FOR_STUDENTS] = Path(FOR_STUDENTS)
    readme = ROOT / "README.md"
    pages = {page: relinked(text(path), path, page, sources) for path, page in sources.items()}
    start = Path("instructors", "index.md")
    body = relinked(section(text(readme), "For instructors"), readme, start, sources)
    listed = "\n".join(page.stem for page in sorted(pages) if page.parent == start.parent)
    pages[start] = f"# For instructors\n\n{body}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    return pages


def text(path: Path) -> str:
    """A page's source, with the graph that needs a script of its own as a drawing."""
    return MERMAID.sub(lambda _: drawing(LABS), path.read_text(encoding="utf-8"))


def section(readme: str, title: str) -> str:
    """What stands under a heading of the README. Raises ValueError where it has none of this name."""
    found = re.search(README_SECTION.format(title=re.escape(title)), readme, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"README.md has no section {title!r}")
    return found["text"].strip()


def relinked(body: str, source: Path, page: Path, pages: Mapping[Path, Path]) -> str:
    """The text of a file with its links as they must be on its page; code between fences stays."""
    parts = FENCED.split(body)
    return "".join(
        part if n % 2 else LINK.sub(lambda one: _link(one, source, page, pages), part) for n, part in enumerate(parts)
    )


def _link(found: re.Match[str], source: Path, page: Path, pages: Mapping[Path, Path]) -> str:
    to, _, anchor = found["to"].partition("#")
    if "://" in to or not to:
        return found[0]
    target = pages.get((source.parent / to).resolve())
    if target is None:
        return found["text"]
    return f"[{found['text']}]({os.path.relpath(target, page.parent)}{'#' + anchor if anchor else ''})"
