"""What is imported at its first use is no answer's memory; whatever hides behind an import is."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

import pytest
import torch

from grading.isolation.plan import FULL, LIGHT
from grading.supervisor.job import Job
from grading.supervisor.run import preload_of
from grading.worker.protocol.steps import ServeExercise
from labkit import exercises
from labkit.meters.memory import LATE, load_imports_of
from labkit.meters.memory.budget import PYTHON_NOISE_BYTES, measure_memory, measure_saved
from labkit.students_code import is_students

pytestmark = pytest.mark.slow
RARE = ("colorsys", "xml.dom.pulldom", "wsgiref.util", "sched", "stringprep")
"""Installed modules that hardly anything needs."""
MANY = 2**18
MANY_BYTES = 8 * MANY - PYTHON_NOISE_BYTES
FRESH = """
import torch
from torch.utils.checkpoint import checkpoint
from labkit.meters import measure_memory

def peak_bytes():
    measured = {}
    weight, x = torch.ones(64, 64, requires_grad=True), torch.ones(8, 64, requires_grad=True)
    with measure_memory(measured):
        checkpoint(lambda x: (x @ weight).relu(), x, use_reentrant=False).sum().backward()
        torch.empty(3, device="meta") + 1
    return measured["peak_bytes"]

print(peak_bytes(), peak_bytes())
"""


@pytest.mark.full("answers")
def test_the_first_block_of_a_process_counts_what_the_next_one_does() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    first, second = map(float, done.stdout.split())
    assert first == second < 2**15


def imports_one():
    import colorsys

    return colorsys


def imports_from_a_package():
    from xml.dom import pulldom

    return pulldom


class HasMethods:
    @staticmethod
    def imports():
        import wsgiref.util as util

        return util


def uses_another():
    return HasMethods.imports()


def encloses_another():
    import sched

    return lambda: sched


def makes_another() -> Callable:
    def inner():
        import stringprep

        return stringprep

    return inner


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (imports_one, "colorsys"),
        (functools.partial(imports_one), "colorsys"),
        (functools.cache(imports_one), "colorsys"),
        (imports_from_a_package, "xml.dom.pulldom"),
        (HasMethods, "wsgiref.util"),
        (type("Derived", (HasMethods,), {}), "wsgiref.util"),
        (HasMethods().imports, "wsgiref.util"),
        (uses_another, "wsgiref.util"),
        (encloses_another, "sched"),
        (makes_another, "stringprep"),
        (makes_another(), "stringprep"),
    ],
)
def test_what_an_answer_imports_when_it_is_called_is_there_before(answer, name, monkeypatch) -> None:
    for one in [one for one in sys.modules if one.startswith(RARE)]:
        monkeypatch.delitem(sys.modules, one)
    load_imports_of([answer])
    assert [one for one in RARE if one in sys.modules] == [name]


def test_a_module_of_the_student_s_is_not_loaded_for_them(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_own_helper.py").write_text(f"kept = [None] * {MANY}\n")
    monkeypatch.syspath_prepend(tmp_path)

    def answer():
        import my_own_helper

        return my_own_helper.kept

    load_imports_of([answer])
    assert "my_own_helper" not in sys.modules
    measured = {}
    with measure_memory(measured):
        assert len(answer()) == MANY
    monkeypatch.delitem(sys.modules, "my_own_helper")
    assert measured["peak_bytes"] >= MANY_BYTES


class Hides(MetaPathFinder):
    """Parks a list in an installed module while that is imported."""

    def find_spec(self, name, path=None, target=None):
        spec = PathFinder.find_spec(name, path)
        kept = [None] * MANY
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (run(module), setattr(module, "kept", kept))
        return spec


def test_what_is_hidden_behind_the_import_of_an_installed_module_counts(monkeypatch) -> None:
    def answer():
        import colorsys

        return colorsys.kept

    load_imports_of([answer])
    monkeypatch.delitem(sys.modules, "colorsys")
    monkeypatch.setattr(sys, "meta_path", [Hides(), *sys.meta_path])
    measured = {}
    with measure_memory(measured), measure_saved(measured):
        assert len(answer()) == MANY
    monkeypatch.delitem(sys.modules, "colorsys")
    assert min(measured.values()) >= MANY_BYTES


def test_a_name_that_is_not_there_is_the_answer_s_to_find_out() -> None:
    def answer():
        import numpy.not_there

        return numpy.not_there

    load_imports_of([answer, None, "import colorsys", 3])


class RaisesWhenLookedAt(type):
    @property
    def __dict__(cls):
        raise AttributeError("private")


def test_a_class_that_will_not_be_looked_at_is_the_answer_s_own_affair() -> None:
    load_imports_of([RaisesWhenLookedAt("Private", (), {})])


def test_the_classes_of_pytorch_are_not_gone_through(monkeypatch) -> None:
    """They hold thousands of methods: a module of the student's would take seconds, on every run."""
    seen = []
    monkeypatch.setattr("labkit.meters.memory.late.is_students", lambda file: seen.append(file) or is_students(file))

    class Block(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x)

    load_imports_of([Block, Block(2, 2)])
    assert 0 < len(seen) < 20


def test_the_grader_has_loaded_it_where_memory_is_measured() -> None:
    """What is read in an exercise's text is what it declares."""
    assert LATE[0] in FULL and LATE[0] not in LIGHT
    for name, exercise in exercises.everything().items():
        step = ServeExercise("a", name, {})
        loaded = preload_of(Job(name[:2], "ada", "1", (step,), (), (), b""))
        assert (LATE[0] in loaded) == bool({"memory", "saved"} & set(exercise.meters)), name
