"""What a command of the grader does not import: counted in modules, not in seconds, so that no machine changes it.

Each command starts in a process of its own. A module that is spared costs 0.1 to 2 s of CPU at each start.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.grading import lessons
from tests.grading.in_process import graded_in_process

REPOSITORY = Path(__file__).resolve().parents[2]
COMPUTES = ("torch", "triton", "labkit.observe", "labkit.meters", "grading.supervisor.verdicts")
DRAWS = ("matplotlib", "numpy")
"""A trial of a tier has them: matplotlib knows where its list of fonts is, which goes to the worker."""
SERVES = ("jupyter_server", "nbgrader.server_extensions.formgrader.handlers", "rfc3987_syntax.syntax_helpers")
NOTEBOOKS = ("nbgrader", "nbformat", "jsonschema", "nbconvert", "IPython", "sqlalchemy", "rich")
SPARED = {
    "main(['--help'])": (*COMPUTES, *DRAWS, *SERVES, *NOTEBOOKS),
    "main(['grade', '--help'])": (*COMPUTES, *DRAWS, *SERVES),
    "main(['doctor'])": (*COMPUTES, *SERVES, "nbgrader", "nbformat", "jsonschema"),
}
"""By what a process does, the modules that it must not have loaded at the end."""
QUICKEST = "main(['--help'])"
LOADED = """
import sys
from grading.__main__ import main
try:
    {does}
except SystemExit:
    pass
print("LOADED", *sorted(sys.modules))
"""


def run(program: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "does", [pytest.param(does, marks=() if does == QUICKEST else pytest.mark.slow) for does in SPARED]
)
def test_a_command_does_not_import_what_it_does_not_use(does: str) -> None:
    loaded = run(LOADED.format(does=does)).split()
    assert loaded[0] == "LOADED"
    assert sorted(set(SPARED[does]) & set(loaded)) == []


@pytest.mark.slow
def test_grading_what_has_not_changed_computes_nothing(tmp_path: Path) -> None:
    """Neither the exercises nor PyTorch: a grade that stands is known by digests of files."""
    course = lessons.make_course(tmp_path / "course")
    for n in range(2):
        lessons.submit(course, f"s{n}", f"# {n}\n{lessons.SOLUTION}")
    again = f"main(['grade', {str(course.root)!r}, '00', '--isolation', 'none'])"
    with graded_in_process():
        assert lessons.grade(course, lessons.LAB, ["s0", "s1"], 1, "none") == []
    assert COMPUTES[0] not in run(LOADED.format(does=again)).split()
    # The control: one has changed.
    lessons.submit(course, "s1", lessons.SOLUTION)
    assert set(COMPUTES[:1]) <= set(run(LOADED.format(does=again)).split())


def test_what_is_spared_is_there() -> None:
    """The control: these are names of modules that could be loaded, or nothing would be said of them."""
    names = {name for spared in SPARED.values() for name in spared} - {"triton", "rfc3987_syntax.syntax_helpers"}
    assert [name for name in sorted(names) if importlib.util.find_spec(name) is None] == []
    with pytest.raises(ModuleNotFoundError):
        importlib.util.find_spec("nbgrader.no_such_extension.handlers")
    assert importlib.util.find_spec("no_such_package") is None


DEFERRED = """
import sys
import grading, nbgrader, nbgrader.server_extensions.formgrader as extension
handlers = "nbgrader.server_extensions.formgrader.handlers"
before = handlers in sys.modules
try:
    nbgrader.load_formgrader(None)
except AttributeError as error:
    print(before, handlers in sys.modules, "'NoneType' object has no attribute" in str(error))
"""


@pytest.mark.slow
def test_a_deferred_module_is_loaded_when_it_is_called() -> None:
    """nbgrader's extension then does what it always did: here it fails on a server that is none."""
    assert run(DEFERRED) == "False True True"


@pytest.mark.slow
def test_the_functions_of_labkit_are_found_whatever_was_imported_before() -> None:
    """`labkit.check` is what notebooks call, also where the package of that name was imported first."""
    program = "import labkit.check.text, labkit.devices, labkit.observe\nfrom labkit import check, device\n"
    assert run(program + "import labkit\nprint(check.__name__, device(), labkit.check is check)").endswith(" True")
