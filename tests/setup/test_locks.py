"""The lock files hold a version of everything that the labs and the grader ask for, within the bounds asked for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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
    lines = [*project["dependencies"], *(line for name in ("labs", "grading", "dev") for line in extras[name])]
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
        assert all(requirement.specifier.contains(version) for version in found), (requirement, found)


def test_only_the_build_for_gpus_brings_cuda_libraries() -> None:
    assert "nvidia-cublas" in locked("cuda") and "nvidia-cublas" not in locked("cpu")
    assert locked("cuda")["torch"] == locked("cpu")["torch"]
