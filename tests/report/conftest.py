"""The graded class that these tests read, made once in each process: whatever reads it is slow."""

from pathlib import Path

import pytest

from grading.course import Course
from grading.report.gather import gather_record
from grading.report.record import ClassRecord
from tests.grading.in_process import graded_in_process
from tests.report.course import graded_course


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "course" in getattr(item, "fixturenames", ()) and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    with graded_in_process():
        return graded_course(tmp_path_factory.mktemp("report") / "course 1")


@pytest.fixture(scope="session")
def record(course: Course) -> ClassRecord:
    return gather_record(course)
