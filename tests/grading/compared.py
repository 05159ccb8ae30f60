"""What grading has left in a course, row by row and file by file, and nbgrader's own grading to compare it with."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from nbgrader.api import Course as CourseRow
from nbgrader.api import Gradebook

from grading.course import Course
from grading.nbgrader_api import open_api
from tests.grading.lessons import LAB


def copy_of(course: Course, root: Path) -> Course:
    return Course.at(shutil.copytree(course.root, root))


def book(course: Course) -> Gradebook:
    return Gradebook(f"sqlite:///{course.root}/gradebook.db", "small")


def by_nbgrader(course: Course) -> None:
    api = open_api(course)
    for student in course.students(LAB):
        done = api.autograde(LAB, student)
        assert done["success"], done


def rows(course: Course) -> list[tuple]:
    """Every row that grading can write, with names in place of the ids, which are drawn at random."""
    found: list[tuple] = []
    with book(course) as gradebook:
        found += [("course", row.id) for row in gradebook.db.query(CourseRow)]
        for student in gradebook.students:
            found.append(tuple(sorted((name, str(value)) for name, value in student.to_dict().items())))
        for sent in gradebook.assignment_submissions(LAB):
            found.append((sent.student_id, sent.timestamp, sent.extension, sent.score, sent.needs_manual_grade))
            for notebook in sent.notebooks:
                found.append((sent.student_id, notebook.name, notebook.flagged, notebook.late_submission_penalty))
                for grade_row in notebook.grades:
                    points = (grade_row.auto_score, grade_row.manual_score, grade_row.extra_credit)
                    found.append((sent.student_id, grade_row.name, *points, grade_row.needs_manual_grade))
                for comment in notebook.comments:
                    found.append((sent.student_id, comment.name, comment.auto_comment, comment.manual_comment))
    with sqlite3.connect(course.root / "gradebook.db") as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        found += [(name, *database.execute(f"select count(*) from {name}")) for name in tables]
    return sorted(found, key=repr)


def files(course: Course) -> dict[str, tuple[int, bytes]]:
    root = course.root / "autograded"
    return {
        str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in root.rglob("*")
    }


def modes(course: Course) -> dict[str, int]:
    return {name: mode for name, (mode, _) in files(course).items()}


def assert_same(one: Course, other: Course) -> None:
    assert rows(one) == rows(other)
    ours, theirs = files(one), files(other)
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []
