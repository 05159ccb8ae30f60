"""The lesson that these tests build is called lab 20, and says nowhere how long it takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import labkit.labs
from tests.build import lesson


@pytest.fixture(scope="module", autouse=True)
def the_lesson_has_no_minutes(request: pytest.FixtureRequest) -> Iterator[None]:
    """The course itself, whose notebooks and map are tested as well, has them."""
    with pytest.MonkeyPatch.context() as patched:
        if not request.module.__name__.endswith(("test_course_map", "test_fresh")):
            patched.setattr(labkit.labs, "LABS", lesson.WITHOUT_MINUTES)
        yield
