"""The lock files hold a version of everything that the labs and the grader ask for, within the bounds asked for."""

from __future__ import annotations

import contextlib
import tomllib
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
OURS = "efficient-training-labs"


def locked(build: str) -> dict[str, list[str]]:
    """The versions of each package: several where Pythons or systems differ."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / ".make" / "locks" / f"{build}.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, version = line.split(";")[0].strip().split("==")
            found.setdefault(name, []).append(version)
    return found


def asked() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in ("labs", "grading", "dev", "site") for line in extras[name])]
    for line in lines:
        requirement = Requirement(line)
        if requirement.name == OURS:
            lines += [one for name in requirement.extras for one in extras[name]]
    return [one for one in map(Requirement, lines) if one.name != OURS]


@pytest.mark.parametrize("build", ["cpu", "cuda"])
def test_all_that_is_asked_for_is_locked_within_its_bounds(build: str) -> None:
    versions = locked(build)
    requirements = asked()
    assert len(requirements) > 20
    for requirement in requirements:
        found = versions[requirement.name.lower().replace("_", "-")]
        assert all(requirement.specifier.contains(each) for each in found), (requirement, found)


@pytest.mark.parametrize("build", ["cpu", "cuda"])
def test_what_the_oldest_python_gets_runs_on_it(build: str) -> None:
    """Of the versions that are installed here, whose metadata say what they need."""
    oldest = {"python_version": "3.11", "python_full_version": "3.11.0"}
    n_seen = 0
    for line in (ROOT / ".make" / "locks" / f"{build}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or ((one := Requirement(line)).marker and not one.marker.evaluate(oldest)):
            continue
        with contextlib.suppress(PackageNotFoundError):
            needs = metadata(one.name).get("Requires-Python")
            if one.specifier.contains(version(one.name)) and needs:
                n_seen += 1
                assert SpecifierSet(needs).contains("3.11.0"), f"{line} needs Python {needs}"
    assert n_seen > 100


def test_only_the_build_for_gpus_brings_cuda_libraries() -> None:
    assert "nvidia-cublas" in locked("cuda") and "nvidia-cublas" not in locked("cpu")
    assert locked("cuda")["torch"] == locked("cpu")["torch"]
