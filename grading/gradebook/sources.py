"""The solved notebooks of a course's `source/` folder: built from the labs, as its `course.toml` adapts them.

Nothing is released here: students and the gradebook have what was released last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from nbformat import NotebookNode

from grading import own_labs
from grading.build import BadSource, build
from grading.build.adapt import BadAdaptation
from grading.build.notebook import to_json
from grading.course import Course
from grading.course_file import NAME, CourseFile, read_course_file
from grading.errors import UserError
from grading.files import write_output

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"


def build_sources(file: CourseFile, labs: Collection[str] | None = None) -> dict[str, NotebookNode]:
    """The solved notebook of each lab by name; `labs` are numbers, in place of those of the file.

    Raises UserError for a lab that there is not, for what a lab does not have, and where no lab would be left.
    """
    wanted = file.labs if labs is None else labs
    own_labs.use(file.own_labs)
    sources = {path.stem[:2]: path for path in own_labs.sources()}
    if not sources:
        raise UserError(f"{SOLUTIONS} has no labs", "run this from a full checkout, not from a student bundle")
    if wanted is not None and not wanted:
        raise UserError("the course would have no labs", f"name some, or none for all of them: {', '.join(sources)}")
    named = [*(wanted or ()), *(name[:2] for name in (*file.wanted.leave_out, *file.wanted.points))]
    if unknown := sorted(set(named) - set(sources)):
        raise UserError(f"there is no lab {unknown[0]}", f"there are {', '.join(sources)}")
    try:
        paths = [path for number, path in sources.items() if wanted is None or number in wanted]
        return {path.stem: build(path, wanted=file.wanted).solution for path in paths}
    except BadSource as error:
        raise UserError("a lab's source is refused", f"fix this: {'; '.join(map(str, error.problems))}") from error
    except BadAdaptation as error:
        raise UserError(f"{NAME} cannot be followed", str(error)) from error


def renew_sources(course: Course) -> Mapping[str, str]:
    """Make `source/` what the labs and `course.toml` say now; by lab, what became of it ("new", "changed", "same").

    A notebook that is replaced is kept under `.grading/sources/`. A lab that the course no longer has stays as it is.
    """
    states = {}
    for lab, notebook in build_sources(read_course_file(course.root / NAME)).items():
        path, text = course.source(lab), to_json(notebook)
        before = path.read_bytes() if path.is_file() else None
        states[lab] = "new" if before is None else "same" if before == text.encode() else "changed"
        if states[lab] == "changed":
            digest = hashlib.sha256(before).hexdigest()
            write_output(course.root / ".grading" / "sources" / lab / f"{digest}.ipynb", before.decode())
        if states[lab] != "same":
            write_output(path, text)
    return states


def outdated(course: Course, labs: Collection[str]) -> list[str]:
    """Those of these labs whose source is not what the labs and `course.toml` give now; the cause may be an edit of
    either side. A lab that this repository does not have, or has with a fault, is none of them.
    """
    file, known = read_course_file(course.root / NAME), {path.stem: path for path in own_labs.sources()}
    found = []
    for lab in labs:
        try:
            now = lab in known and to_json(build(known[lab], wanted=file.wanted).solution)
        except (BadSource, BadAdaptation):
            continue
        if now and now != course.source(lab).read_text(encoding="utf-8"):
            found.append(lab)
    return found
