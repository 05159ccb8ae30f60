"""Grade the demo's essays as a person does in the formgrader: points for a cell, straight into nbgrader's gradebook."""

from __future__ import annotations

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from grading.course import Course
from grading.demo.roster import DemoStudent
from grading.demo.sample import Expected
from grading.nbgrader_api import load_config


def grade_by_hand(course: Course, students: list[DemoStudent], expected: Expected) -> int:
    """Give the points that are due for every essay that is not left waiting; returns how many were graded."""
    waiting = {student.name for student in students if student.waits}
    folder = CourseDirectory(config=load_config(course))
    n_graded = 0
    with Gradebook(folder.db_url, folder.course_id) as gradebook:
        for (lab, student), made in expected.items():
            for cell, share in made.by_hand.items() if student not in waiting else ():
                grade = gradebook.find_grade(cell, lab, lab, student)
                grade.manual_score = share * grade.max_score
                grade.needs_manual_grade = False
                n_graded += 1
        gradebook.db.commit()
    return n_graded
