"""The graded class that these tests read, made once."""

import pytest

from grading.course import Course
from grading.report.gather import gather_record
from grading.report.record import ClassRecord
from tests.grading.in_process import graded_in_process
from tests.report.course import graded_course


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    with graded_in_process():
        return graded_course(tmp_path_factory.mktemp("report") / "course 1")


@pytest.fixture(scope="session")
def record(course: Course) -> ClassRecord:
    return gather_record(course)
