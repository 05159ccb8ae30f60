"""The student's notebook is the one that a real `nbgrader generate_assignment` releases."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grading.build import build
from grading.build.notebook import to_json
from tests.build import lesson

CONFIG = """
from grading.build.stub import nbgrader_config
c = get_config()
c.merge(nbgrader_config())
c.CourseDirectory.course_id = "small"
"""


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """(what we make, what nbgrader releases), as text."""
    root = tmp_path_factory.mktemp("course")
    built = build(lesson.write(root, lesson.source()), lesson.EXERCISES)
    source = root / "source" / "20_small_lab" / "20_small_lab.ipynb"
    source.parent.mkdir(parents=True)
    source.write_text(to_json(built.solution), encoding="utf-8")
    (root / "nbgrader_config.py").write_text(CONFIG)
    # nbgrader starts alembic by name, and its configuration imports this project.
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "JUPYTER_CONFIG_DIR": str(root / "config"),
    }
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "20_small_lab"]
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return to_json(built.student), (root / "release" / "20_small_lab" / "20_small_lab.ipynb").read_text("utf-8")


def test_it_is_the_same_to_the_byte(released):
    ours, nbgraders = released
    assert ours == nbgraders
